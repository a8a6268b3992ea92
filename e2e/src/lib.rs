//! The lab: everything a story needs to watch the operator work on a real Kubernetes API, with only
//! AWS and the hardware simulated. Its users are the stories in `tests/stories` and the program
//! `hpc-lab`. It links no AWS SDK, so that what is tested is what goes over the wire.

pub mod audit;
pub mod control_plane;
pub mod error;
pub mod eventually;
pub mod evidence;
pub mod helm;
pub mod kubeconfig;
pub mod kubelet;
pub mod lab;
pub mod places;
pub mod process;
pub mod sim;
pub mod story;

pub use control_plane::ControlPlane;
pub use error::{LabError, Result};
pub use eventually::{await_condition, eventually};
pub use kubelet::{Operator, Restart};
pub use lab::{Lab, Options};
pub use story::Story;
