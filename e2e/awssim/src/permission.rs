//! Which IAM actions a call needs, dependants included: the simulator's own
//! table, so that an operator's idea of its policy is checked against another.

use std::collections::BTreeSet;

use crate::wire::{ApiError, Service};

/// What of a request decides about dependants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// It tags what it creates.
    pub tags: bool,
    /// It passes an instance profile.
    pub profile: bool,
}

/// IAM actions needed for a call.
pub fn needed(service: Service, action: &str, traits: Traits) -> Vec<String> {
    let mut actions = Vec::new();
    if service != Service::Sts {
        actions.push(format!("{}:{action}", service.name()));
    }
    let creates = ["Create", "Run", "Put", "Authorize"].iter().any(|verb| action.starts_with(verb));
    if traits.tags && creates && action != "CreateTags" {
        actions.push(tagging(service).to_owned());
    }
    if traits.profile {
        actions.push("iam:PassRole".to_owned());
    }
    actions
}

fn tagging(service: Service) -> &'static str {
    match service {
        Service::Ec2 => "ec2:CreateTags",
        Service::Fsx => "fsx:TagResource",
        Service::Ssm => "ssm:AddTagsToResource",
        Service::Sts => "sts:TagSession",
    }
}

/// Refuses a call that needs a denied action (`ec2:RunInstances`, `ec2:*`).
pub fn check(
    denied: &BTreeSet<String>,
    service: Service,
    needed: &[String],
    account: &str,
) -> Result<(), ApiError> {
    let hit = |action: &&String| {
        let family = action.split(':').next().unwrap_or_default();
        denied.contains(*action) || denied.contains(&format!("{family}:*"))
    };
    needed.iter().find(hit).map_or(Ok(()), |action| Err(refusal(service, action, account)))
}

fn refusal(service: Service, action: &str, account: &str) -> ApiError {
    let who = format!("arn:aws:iam::{account}:user/hpcops");
    let reason = format!(
        "User: {who} is not authorized to perform: {action} on resource: * \
         because no identity-based policy allows the {action} action"
    );
    match service {
        Service::Ec2 => ApiError::with_status(
            403,
            "UnauthorizedOperation",
            format!("You are not authorized to perform this operation. {reason}"),
        ),
        Service::Fsx | Service::Ssm => ApiError::with_status(403, "AccessDeniedException", reason),
        Service::Sts => ApiError::with_status(403, "AccessDenied", reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependants_are_needed_too() {
        let both = Traits { tags: true, profile: true };
        for (service, action, traits, expected) in [
            (Service::Ec2, "RunInstances", both, "ec2:RunInstances ec2:CreateTags iam:PassRole"),
            (Service::Ec2, "RunInstances", Traits::default(), "ec2:RunInstances"),
            (Service::Ec2, "CreateTags", Traits { tags: true, profile: false }, "ec2:CreateTags"),
            (
                Service::Fsx,
                "CreateFileSystem",
                Traits { tags: true, profile: false },
                "fsx:CreateFileSystem fsx:TagResource",
            ),
            (
                Service::Ssm,
                "CreateDocument",
                Traits { tags: true, profile: false },
                "ssm:CreateDocument ssm:AddTagsToResource",
            ),
            (Service::Sts, "GetCallerIdentity", Traits::default(), ""),
        ] {
            assert_eq!(needed(service, action, traits).join(" "), expected);
        }
    }

    #[test]
    fn the_refusal_names_the_denied_action() {
        let denied = BTreeSet::from(["iam:PassRole".to_owned()]);
        let needed = ["ec2:RunInstances".to_owned(), "iam:PassRole".to_owned()];
        let error = check(&denied, Service::Ec2, &needed, "111122223333").unwrap_err();
        assert_eq!((error.status, error.code.as_str()), (403, "UnauthorizedOperation"));
        assert!(error.message.contains("iam:PassRole"));
        check(&denied, Service::Ec2, &needed[..1], "111122223333").unwrap();
    }
}
