//! What the conditions of one pass make of those of the pass before.

use hpc_crds::condition::is_true;
use hpc_crds::{Condition, ConditionSet, ConditionStatus, ConditionType, Reason, Time};
use serde_json::json;

use ConditionStatus::{False, True, Unknown};
use ConditionType::{
    FleetsReady, HeadReady, NetworkReady, Ready, Reconciling, Stalled, StorageReady, Succeeded,
};

fn at(second: u32) -> Time {
    Time::new(format!("2026-11-30T10:00:{second:02}Z").parse().unwrap())
}

/// `type=status(reason)` of each condition, in order.
fn told(conditions: &[Condition]) -> String {
    let each = conditions
        .iter()
        .map(|condition| format!("{}={}({})", condition.type_, condition.status, condition.reason));
    each.collect::<Vec<_>>().join(" ")
}

fn one(status: ConditionStatus, reason: Reason, second: u32) -> Vec<Condition> {
    let mut set = ConditionSet::new(&[], 1, at(second));
    set.set(HeadReady, status, reason, "as it is");
    set.into_conditions()
}

#[test]
fn the_same_again_is_no_change() {
    let before = one(True, Reason::Ready, 1);
    let mut set = ConditionSet::new(&before, 1, at(9));
    set.set(HeadReady, True, Reason::Ready, "as it is");
    assert_eq!(set.into_conditions(), before);
}

#[test]
fn the_transition_time_moves_with_the_status_only() {
    let before = one(Unknown, Reason::Booting, 1);
    let check = |status, reason, expected| {
        let mut set = ConditionSet::new(&before, 1, at(9));
        set.set(HeadReady, status, reason, "");
        assert_eq!(set.get(HeadReady).unwrap().last_transition_time, expected);
    };
    check(Unknown, Reason::WaitingForAgent, at(1));
    check(True, Reason::Ready, at(9));
    check(False, Reason::BootTimeout, at(9));
}

#[test]
fn a_condition_set_twice_in_a_pass_keeps_the_time_of_the_pass_before() {
    let before = one(True, Reason::Ready, 1);
    let mut set = ConditionSet::new(&before, 1, at(9));
    set.set(HeadReady, Unknown, Reason::Pending, "").set(
        HeadReady,
        True,
        Reason::Ready,
        "as it is",
    );
    assert_eq!(set.into_conditions(), before);
}

#[test]
fn each_condition_says_which_generation_it_speaks_of() {
    let before = one(True, Reason::Ready, 1);
    let mut set = ConditionSet::new(&before, 2, at(9));
    assert_eq!(set.get(HeadReady).unwrap().observed_generation, 1);
    set.set(HeadReady, True, Reason::Ready, "as it is");
    assert_eq!(set.get(HeadReady).unwrap().observed_generation, 2);
}

#[test]
fn what_a_pass_does_not_look_at_stays() {
    let before = one(False, Reason::BootFailed, 1);
    let mut set = ConditionSet::new(&before, 1, at(9));
    set.keep(HeadReady).keep(NetworkReady);
    assert_eq!(
        told(&set.into_conditions()),
        "NetworkReady=Unknown(Pending) HeadReady=False(BootFailed)"
    );
}

#[test]
fn abnormal_conditions_are_there_only_while_said_and_true() {
    let mut set = ConditionSet::new(&[], 1, at(1));
    set.set(Stalled, True, Reason::AccountChanged, "").set(Reconciling, False, Reason::Ready, "");
    let before = set.into_conditions();
    assert_eq!(told(&before), "Stalled=True(AccountChanged)");
    let mut set = ConditionSet::new(&before, 1, at(9));
    set.set(Stalled, True, Reason::AccountChanged, "");
    assert_eq!(set.into_conditions(), before, "still true, since the same time");
    assert_eq!(told(&ConditionSet::new(&before, 1, at(9)).into_conditions()), "");
}

#[test]
fn conditions_have_a_fixed_order() {
    let mut set = ConditionSet::new(&[], 1, at(1));
    for type_ in [Stalled, FleetsReady, Ready, NetworkReady] {
        set.set(type_, True, Reason::Ready, "");
    }
    let order: Vec<_> = set.into_conditions().iter().filter_map(Condition::known_type).collect();
    assert_eq!(order, [Ready, NetworkReady, FleetsReady, Stalled]);
}

#[test]
fn the_root_is_the_worst_of_its_parts() {
    let check = |parts: &[(ConditionType, ConditionStatus, Reason)], expected: &str| {
        let mut set = ConditionSet::new(&[], 1, at(1));
        for (type_, status, reason) in parts {
            set.set(*type_, *status, *reason, &format!("about {type_}"));
        }
        set.set_root(Ready, &ConditionType::CLUSTER_PARTS, (Reason::Ready, "2 of 2 nodes"));
        let root = set.get(Ready).unwrap();
        assert_eq!(format!("{} {} {}", root.status, root.reason, root.message), expected);
    };
    let good = |type_| (type_, True, Reason::Ready);
    let all = ConditionType::CLUSTER_PARTS.map(good);
    check(&all, "True Ready 2 of 2 nodes");
    check(&[], "Unknown Pending ");
    check(&all[..3], "Unknown Pending ");
    let creating = (StorageReady, Unknown, Reason::Creating);
    let short = (FleetsReady, False, Reason::InsufficientCapacity);
    check(&[all[0], creating, all[2], short], "False InsufficientCapacity about FleetsReady");
    check(&[all[0], creating, all[2], all[3]], "Unknown Creating about StorageReady");
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let check = |message: &str, length: usize, end: &str| {
        let mut set = ConditionSet::new(&[], 1, at(1));
        set.set(Ready, False, Reason::Failed, message);
        let kept = &set.get(Ready).unwrap().message;
        assert_eq!(kept.len(), length);
        assert!(kept.ends_with(end), "{kept}");
    };
    check(&"a".repeat(1024), 1024, "aaa");
    check(&"a".repeat(1025), 1024, "a...");
    check(&"ä".repeat(600), 1023, "ä...");
    check("", 0, "");
}

#[test]
fn a_condition_of_another_version_is_read_and_dropped() {
    let newer: Vec<Condition> = serde_json::from_value(json!([
        {"type": "GrowthBlocked", "status": "True", "lastTransitionTime": "2026-11-30T10:00:00Z", "reason": "NewReason", "message": ""},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T10:00:00Z", "reason": "NewReason", "message": ""},
    ]))
    .unwrap();
    assert!(is_true(&newer, Ready) && !is_true(&newer, Succeeded));
    assert_eq!(newer[1].known_reason(), None);
    assert_eq!(
        told(&ConditionSet::new(&newer, 1, at(1)).into_conditions()),
        "Ready=True(NewReason)"
    );
}

#[test]
fn every_reason_has_a_short_name_a_sentence_and_a_way_out() {
    for reason in Reason::all() {
        assert!(reason.to_string().len() <= 24, "{reason}");
        assert_eq!(reason.to_string().parse(), Ok(reason));
        for sentence in [reason.description(), reason.way_out()] {
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{reason}: {sentence}");
        }
    }
    for type_ in ConditionType::all() {
        assert!(type_.description().ends_with('.'), "{type_}");
    }
}
