//! The one clock. It scales delays and never timestamps: what AWS would date
//! is dated with the real time, only sooner.

use jiff::{SignedDuration, Timestamp};

use crate::dice::Dice;

/// What takes time in simulated AWS. README lists the ranges; they are
/// assumptions, not measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delay {
    /// Until a Describe by filter shows a new EC2 resource.
    Visible,
    /// Until a new EC2 resource can be named in another call.
    Usable,
    /// Until a security group rule shows and counts.
    RuleVisible,
    /// Until `PrivateIpAddress` is filled.
    Address,
    /// `pending` to `running`.
    Running,
    /// `running` to agent Online, for an instance without a body.
    Agent,
    /// `shutting-down` to `terminated`.
    Terminated,
    /// `terminated` until it is forgotten.
    Forgotten,
    /// Status checks `initializing` to `ok`.
    StatusOk,
    /// Placement group or volume `pending`/`creating` to `available`.
    SmallResource,
    /// FSx `CREATING` to `AVAILABLE`, without the part that grows with size.
    FileSystem,
    /// FSx `DELETING` until it is gone.
    FileSystemGone,
    /// Until a new file system shows in a list.
    FileSystemVisible,
    /// `SendCommand` until the agent has the command.
    Delivery,
    /// `SendCommand` until `GetCommandInvocation` knows it.
    Invocation,
}

impl Delay {
    /// All of them, for `GET /_sim/config`.
    pub const ALL: [Self; 15] = [
        Self::Visible,
        Self::Usable,
        Self::RuleVisible,
        Self::Address,
        Self::Running,
        Self::Agent,
        Self::Terminated,
        Self::Forgotten,
        Self::StatusOk,
        Self::SmallResource,
        Self::FileSystem,
        Self::FileSystemGone,
        Self::FileSystemVisible,
        Self::Delivery,
        Self::Invocation,
    ];

    /// Shortest and longest, in unscaled seconds.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::Visible => (0.0, 10.0),
            Self::Usable | Self::Invocation => (0.0, 3.0),
            Self::RuleVisible | Self::FileSystemVisible => (0.0, 5.0),
            Self::Address => (0.0, 8.0),
            Self::Running => (10.0, 60.0),
            Self::Agent => (20.0, 120.0),
            Self::Terminated => (15.0, 60.0),
            Self::Forgotten => (3600.0, 3600.0),
            Self::StatusOk => (90.0, 150.0),
            Self::SmallResource => (1.0, 5.0),
            Self::FileSystem => (300.0, 600.0),
            Self::FileSystemGone => (60.0, 240.0),
            Self::Delivery => (0.2, 2.0),
        }
    }

    /// Name in the configuration answer.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// Time as the simulator sees it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    scale: f64,
}

impl Clock {
    /// A clock whose delays are multiplied by `scale` (1.0 = as AWS).
    pub fn new(scale: f64) -> Self {
        Self { scale }
    }

    /// The factor.
    pub fn scale(self) -> f64 {
        self.scale
    }

    /// A drawn, scaled delay.
    pub fn delay(self, dice: Dice, delay: Delay, key: &str) -> SignedDuration {
        let (shortest, longest) = delay.range();
        let seconds = shortest + (longest - shortest) * dice.unit(&delay.name(), key);
        self.scaled(seconds)
    }

    /// A fixed, scaled delay.
    pub fn scaled(self, seconds: f64) -> SignedDuration {
        SignedDuration::from_secs_f64((seconds * self.scale).clamp(0.0, 1.0e9))
    }
}

/// The real time.
#[expect(clippy::disallowed_methods, reason = "this is the simulator's only clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// EC2's date format.
pub fn iso(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The date format of JSON services: seconds since the epoch.
pub fn epoch(time: Timestamp) -> f64 {
    SignedDuration::from_millis(time.as_millisecond()).as_secs_f64()
}
