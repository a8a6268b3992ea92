//! What exists in AWS before any account does anything: instance types,
//! zones and where types are offered, public images.

mod images;
mod types;
mod zones;

pub use images::{Image, images};
pub use types::{Card, InstanceType, Types};
pub use zones::{Subnet, Zone, offered, subnets, vpc_id, zones};
