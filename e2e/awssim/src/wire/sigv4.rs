//! The `Authorization` header of `SigV4`: who calls, which region, which
//! service. The signature must be present; it is not verified, because the
//! simulator keeps no secrets.

use super::ApiError;

/// Credential scope of a signed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// For example `AKIDEXAMPLE`.
    pub access_key: String,
    /// For example `us-east-1`.
    pub region: String,
    /// Signing name, for example `ec2`.
    pub service: String,
}

/// Reads the scope; without one the request is not authenticated.
pub fn credential(authorization: Option<&str>) -> Result<Credential, ApiError> {
    let header = authorization.ok_or_else(|| {
        ApiError::with_status(
            403,
            "MissingAuthenticationToken",
            "Request is missing Authentication Token",
        )
    })?;
    parse(header).ok_or_else(|| {
        ApiError::client(
            "IncompleteSignature",
            "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters.",
        )
    })
}

fn parse(header: &str) -> Option<Credential> {
    let rest = header.strip_prefix("AWS4-HMAC-SHA256")?.trim();
    let part = |name: &str| {
        rest.split(',').map(str::trim).find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    };
    part("SignedHeaders")?;
    part("Signature").filter(|signature| signature.len() == 64)?;
    let mut scope = part("Credential")?.split('/');
    let (access_key, _date) = (scope.next()?, scope.next()?);
    let (region, service) = (scope.next()?, scope.next()?);
    (scope.next()? == "aws4_request" && !access_key.is_empty()).then(|| Credential {
        access_key: access_key.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_scope_and_refuses_half_headers() {
        let signature = "a".repeat(64);
        let good = format!(
            "AWS4-HMAC-SHA256 Credential=AKID/20261001/us-east-1/ec2/aws4_request, \
             SignedHeaders=host, Signature={signature}"
        );
        let scope = credential(Some(&good)).unwrap();
        assert_eq!((scope.access_key.as_str(), scope.service.as_str()), ("AKID", "ec2"));
        assert_eq!(credential(None).unwrap_err().code, "MissingAuthenticationToken");
        let unsigned = good.split(", Signature").next().unwrap();
        assert_eq!(credential(Some(unsigned)).unwrap_err().code, "IncompleteSignature");
    }
}
