//! The network-interface layout of a launch against the data of its type.
//! Written from `DescribeInstanceTypes` and the EFA guide, not from the
//! operator's layout algorithm.

use std::collections::BTreeSet;

use super::interface::InterfaceType;
use super::launch_request::NicRequest;
use crate::catalog::InstanceType;
use crate::wire::ApiError;

/// One interface of a launch with its type known.
#[derive(Debug, Clone)]
pub struct Nic<'a> {
    /// As asked.
    pub asked: &'a NicRequest,
    /// Its type: asked, or of the existing interface.
    pub kind: InterfaceType,
}

/// Refuses a layout the type cannot have.
pub fn check(t: &InstanceType, nics: &[Nic<'_>], count: u32) -> Result<(), ApiError> {
    check_each(t, nics)?;
    check_primary(nics)?;
    check_slots(nics)?;
    check_limits(t, nics)?;
    check_addresses(nics, count)
}

fn check_each(t: &InstanceType, nics: &[Nic<'_>]) -> Result<(), ApiError> {
    for nic in nics {
        let card = nic.asked.card;
        if nic.asked.device.is_none() {
            return Err(ApiError::missing("NetworkInterface.DeviceIndex"));
        }
        if nic.kind.is_efa() && t.max_efa == 0 {
            return Err(ApiError::combination(format!(
                "Elastic Fabric Adapter interfaces are not supported by instance type {}.",
                t.name
            )));
        }
        let Some(known) = t.cards.iter().find(|known| known.index == card) else {
            return Err(ApiError::invalid_value(
                "networkCardIndex",
                &card.to_string(),
                &format!("Instance type {} has {} network card(s).", t.name, t.cards.len().max(1)),
            ));
        };
        let name = nic.kind.name();
        if !known.interface_types.is_empty() && !known.interface_types.iter().any(|n| n == name) {
            return Err(ApiError::combination(format!(
                "Network card {card} of instance type {} does not support interface type {name}.",
                t.name
            )));
        }
    }
    Ok(())
}

fn check_primary(nics: &[Nic<'_>]) -> Result<(), ApiError> {
    let primary = nics.iter().find(|nic| nic.asked.card == 0 && nic.asked.device == Some(0));
    match primary {
        None => Err(ApiError::client(
            "InvalidParameterValue",
            "A primary network interface (network card 0, device index 0) is required.",
        )),
        Some(nic) if nic.kind == InterfaceType::EfaOnly => Err(ApiError::combination(
            "An efa-only network interface cannot be the primary network interface.",
        )),
        Some(_) => Ok(()),
    }
}

fn check_slots(nics: &[Nic<'_>]) -> Result<(), ApiError> {
    let mut slots = BTreeSet::new();
    for nic in nics {
        if !slots.insert((nic.asked.card, nic.asked.device)) {
            return Err(ApiError::client(
                "InvalidParameterValue",
                format!(
                    "Device index {} is used twice on network card {}.",
                    nic.asked.device.unwrap_or(0),
                    nic.asked.card
                ),
            ));
        }
    }
    Ok(())
}

fn check_limits(t: &InstanceType, nics: &[Nic<'_>]) -> Result<(), ApiError> {
    let exceeded = |what: String| Err(ApiError::client("AttachmentLimitExceeded", what));
    let efa = nics.iter().filter(|nic| nic.kind.is_efa()).count();
    if efa > t.max_efa as usize {
        return exceeded(format!("EFA interface count {efa} exceeds the limit for {}", t.name));
    }
    if nics.len() > t.max_interfaces as usize {
        return exceeded(format!(
            "Interface count {} exceeds the limit for {}",
            nics.len(),
            t.name
        ));
    }
    for card in &t.cards {
        let here: Vec<_> = nics.iter().filter(|nic| nic.asked.card == card.index).collect();
        if here.len() > card.max_interfaces as usize {
            return exceeded(format!(
                "Interface count {} exceeds the limit for network card {} of {}",
                here.len(),
                card.index,
                t.name
            ));
        }
        if here.iter().filter(|nic| nic.kind.is_efa()).count() > 1 {
            return exceeded(format!(
                "Network card {} takes at most one EFA interface",
                card.index
            ));
        }
        let beyond = here.iter().filter_map(|nic| nic.asked.device);
        if let Some(device) = beyond.clone().find(|device| *device >= device_bound(card, t)) {
            return Err(ApiError::invalid_value(
                "deviceIndex",
                &device.to_string(),
                &format!("It is out of range for network card {} of {}.", card.index, t.name),
            ));
        }
    }
    Ok(())
}

/// Device indexes of a card: its interfaces; at least two on further cards,
/// because a combined `efa` there sits at device 1 (EFA guide), except on
/// cards that take one interface only.
fn device_bound(card: &crate::catalog::Card, t: &InstanceType) -> u32 {
    let only_one_each = t.cards.iter().all(|card| card.max_interfaces == 1);
    if card.index > 0 && !only_one_each { card.max_interfaces.max(2) } else { card.max_interfaces }
}

fn check_addresses(nics: &[Nic<'_>], count: u32) -> Result<(), ApiError> {
    let public = nics.iter().any(|nic| nic.asked.public == Some(true));
    if public && nics.len() > 1 {
        return Err(ApiError::combination(
            "The associatePublicIPAddress parameter cannot be specified when launching with \
             multiple network interfaces.",
        ));
    }
    for nic in nics {
        let asked = nic.asked;
        if asked.private_ip.is_some() && (count > 1 || nic.kind == InterfaceType::EfaOnly) {
            return Err(ApiError::combination(
                "The privateIpAddress parameter cannot be specified when launching more than one \
                 instance or for an efa-only network interface.",
            ));
        }
        if asked.existing.is_some() {
            check_existing(asked, count)?;
        }
    }
    Ok(())
}

fn check_existing(asked: &NicRequest, count: u32) -> Result<(), ApiError> {
    if count > 1 {
        return Err(ApiError::combination(
            "A network interface may not be specified when launching more than one instance.",
        ));
    }
    let also = [
        asked.subnet_id.is_some(),
        !asked.groups.is_empty(),
        asked.private_ip.is_some(),
        asked.public.is_some(),
        asked.interface_type.is_some(),
        asked.delete_on_termination == Some(true),
    ];
    if also.contains(&true) {
        return Err(ApiError::combination(
            "A network interface id may not be specified together with attributes of a new one.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Types;

    /// (card, device, type) per interface.
    fn verdict(name: &str, layout: &[(u32, u32, InterfaceType)]) -> String {
        let types = Types::load().unwrap();
        let asked: Vec<NicRequest> = layout
            .iter()
            .map(|(card, device, _)| NicRequest {
                card: *card,
                device: Some(*device),
                ..NicRequest::default()
            })
            .collect();
        let nics: Vec<Nic<'_>> = asked
            .iter()
            .zip(layout)
            .map(|(asked, (_, _, kind))| Nic { asked, kind: *kind })
            .collect();
        match check(types.get(name).unwrap(), &nics, 2) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.code,
        }
    }

    #[test]
    fn layouts_are_judged_by_the_data_of_the_type() {
        use InterfaceType::{Efa, EfaOnly, Interface};
        for (name, layout, expected) in [
            ("t3.micro", vec![(0, 0, Interface)], "ok"),
            ("t3.micro", vec![(0, 0, Efa)], "InvalidParameterCombination"),
            ("c5n.18xlarge", vec![(0, 0, Efa)], "ok"),
            ("c5n.18xlarge", vec![(0, 0, Interface), (0, 1, EfaOnly)], "ok"),
            ("c5n.18xlarge", vec![(0, 0, EfaOnly)], "InvalidParameterCombination"),
            ("c5n.18xlarge", vec![(0, 0, Efa), (0, 1, EfaOnly)], "AttachmentLimitExceeded"),
            ("c5n.18xlarge", vec![(0, 0, Interface), (1, 0, EfaOnly)], "InvalidParameterValue"),
            ("c5n.18xlarge", vec![(0, 0, Interface), (0, 0, EfaOnly)], "InvalidParameterValue"),
            ("c5n.18xlarge", vec![(0, 1, Interface)], "InvalidParameterValue"),
            ("hpc7a.96xlarge", vec![(0, 0, Interface), (0, 1, EfaOnly), (1, 1, EfaOnly)], "ok"),
        ] {
            assert_eq!(verdict(name, &layout), expected, "{name} {layout:?}");
        }
    }

    #[test]
    fn layouts_of_several_cards_are_judged_card_by_card() {
        use InterfaceType::{Efa, EfaOnly, Interface};
        for (name, layout, expected) in [
            (
                "hpc7a.96xlarge",
                vec![(0, 0, Interface), (0, 1, Interface), (0, 2, EfaOnly)],
                "AttachmentLimitExceeded",
            ),
            ("hpc6id.32xlarge", vec![(0, 0, Efa), (1, 0, EfaOnly)], "ok"),
            (
                "i7ie.48xlarge",
                vec![(0, 0, Interface), (0, 1, EfaOnly), (1, 1, EfaOnly)],
                "AttachmentLimitExceeded",
            ),
            ("p6-b300.48xlarge", vec![(0, 0, Efa)], "InvalidParameterCombination"),
            ("p6-b300.48xlarge", vec![(0, 0, Interface), (1, 0, EfaOnly)], "ok"),
        ] {
            assert_eq!(verdict(name, &layout), expected, "{name} {layout:?}");
        }
    }
}
