//! The lab: everything a story needs to watch the operator work on a real Kubernetes API, with only
//! AWS and the hardware simulated. Its users are the stories in `tests/stories` and the program
//! `hpc-lab`. It links no AWS SDK, so that what is tested is what goes over the wire.
//!
//! A story is an `async fn(Arc<Story>) -> Outcome` in a module of `tests/stories`, named in that
//! module's `stories![]`. It has a namespace, an AWS account and a release of its own:
//!
//! 1. [`Story::sim`] sets the scene in AWS (capacity, faults, denied actions),
//! 2. [`Story::operator`] installs the chart and starts the operator as its Deployment says,
//! 3. [`Story::apply`] does what a user does, with the real kubectl,
//! 4. [`await_condition`] waits for what the user would see,
//! 5. [`sim::Sim::ledger`], [`sim::Sim::call_log`] and [`Story::writes_of`] tell what was really done.

pub mod audit;
pub mod control_plane;
pub mod error;
pub mod eventually;
pub mod evidence;
pub mod helm;
pub mod kubeconfig;
pub mod kubelet;
pub mod lab;
pub mod login;
pub mod osu;
pub mod phantom;
pub mod places;
pub mod process;
pub mod sim;
pub mod story;

pub use control_plane::ControlPlane;
pub use error::{LabError, Result};
pub use eventually::{await_condition, eventually};
pub use kubelet::{Operator, Restart};
pub use lab::{Lab, Options};
pub use login::Login;
pub use phantom::Phantom;
pub use story::Story;
