//! Machines for stories about AWS alone: none.

use async_trait::async_trait;

use crate::machine::{BodySpec, Command, ExecOutput, MachineError, Machines};

/// Nothing runs; commands are answered by scripted responders.
#[derive(Debug, Default, Clone, Copy)]
pub struct Bodiless;

#[async_trait]
impl Machines for Bodiless {
    async fn start(&self, body: BodySpec) -> Result<(), MachineError> {
        Err(MachineError::NoBody { instance_id: body.instance_id })
    }

    async fn exec(&self, instance_id: &str, _: Command) -> Result<ExecOutput, MachineError> {
        Err(MachineError::NoBody { instance_id: instance_id.to_owned() })
    }

    async fn kill(&self, _: &str) -> Result<(), MachineError> {
        Ok(())
    }

    fn running(&self) -> Vec<String> {
        Vec::new()
    }

    fn pid(&self, _instance_id: &str) -> Option<i32> {
        None
    }
}
