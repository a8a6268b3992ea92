//! The wire formats of the simulated services: EC2 query and XML, AWS JSON
//! 1.1, STS query. Nothing here knows what a resource is.

mod error;
mod json;
mod params;
mod sigv4;
mod xml;

pub use error::ApiError;
pub use json::decode as decode_json;
pub use params::{Params, decode_form};
pub use sigv4::{Credential, credential};
pub use xml::{document as xml_document, element as xml_element, escape as xml_escape};

/// A service the simulator answers for, with its own wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// EC2 query protocol.
    Ec2,
    /// JSON 1.1.
    Fsx,
    /// JSON 1.1.
    Ssm,
    /// Query protocol.
    Sts,
}

impl Service {
    /// The service with this `SigV4` signing name.
    pub fn from_signing_name(name: &str) -> Option<Self> {
        match name {
            "ec2" => Some(Self::Ec2),
            "fsx" => Some(Self::Fsx),
            "ssm" => Some(Self::Ssm),
            "sts" => Some(Self::Sts),
            _ => None,
        }
    }

    /// The signing name, also botocore's name of the service.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Fsx => "fsx",
            Self::Ssm => "ssm",
            Self::Sts => "sts",
        }
    }

    /// Whether requests and answers are JSON.
    pub fn speaks_json(self) -> bool {
        matches!(self, Self::Fsx | Self::Ssm)
    }

    /// What stands before the action in `X-Amz-Target`.
    pub fn target_prefix(self) -> &'static str {
        match self {
            Self::Fsx => "AWSSimbaAPIService_v20180301.",
            Self::Ssm => "AmazonSSM.",
            Self::Ec2 | Self::Sts => "",
        }
    }
}
