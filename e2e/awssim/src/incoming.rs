//! An HTTP request understood as a call of a service: who, where, which
//! action, with what.

use hyper::HeaderMap;
use serde_json::Value;

use crate::permission::Traits;
use crate::wire::{ApiError, Credential, Service, credential, decode_form};

/// The tag by which tests name calls.
pub const ROLE_TAG: &str = "hpcops.dev:role";

/// The parameters of a call.
#[derive(Debug, Clone)]
pub enum Arguments {
    /// EC2 and STS, without `Action` and `Version`.
    Form(Vec<(String, String)>),
    /// FSx and SSM.
    Json(Value),
}

/// A call before anything is decided about it.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Service by its signing name.
    pub service: Service,
    /// Action.
    pub action: String,
    /// Region of the credential scope.
    pub region: String,
    /// Access key.
    pub access_key: String,
    /// Parameters.
    pub arguments: Arguments,
    /// For the oracle.
    pub content_type: Option<String>,
    /// For the oracle.
    pub user_agent: Option<String>,
    /// For the oracle.
    pub body: String,
}

/// A request that is no call, with the service whose format the error has.
#[derive(Debug)]
pub struct Rejection {
    /// The service it seemed to be for.
    pub service: Service,
    /// What is wrong.
    pub error: ApiError,
}

/// Understands a request.
pub fn read(headers: &HeaderMap, query: &str, body: String) -> Result<Incoming, Box<Rejection>> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let target = header("x-amz-target");
    let guess = if target.is_some() { Service::Ssm } else { Service::Ec2 };
    let reject = |service| move |error| Box::new(Rejection { service, error });
    let scope = credential(header("authorization")).map_err(reject(guess))?;
    let service = Service::from_signing_name(&scope.service).ok_or_else(|| {
        let text = format!("Service {} is not simulated.", scope.service);
        reject(guess)(ApiError::client("InvalidAction", text))
    })?;
    let text = if body.is_empty() { query } else { &body };
    let (action, arguments) = if service.speaks_json() {
        read_json(service, target, text).map_err(reject(service))?
    } else {
        read_form(service, text).map_err(reject(service))?
    };
    let Credential { access_key, region, .. } = scope;
    Ok(Incoming {
        service,
        action,
        region,
        access_key,
        arguments,
        content_type: header("content-type").map(str::to_owned),
        user_agent: header("user-agent").map(str::to_owned),
        body,
    })
}

fn read_json(
    service: Service,
    target: Option<&str>,
    body: &str,
) -> Result<(String, Arguments), ApiError> {
    let action = target
        .and_then(|target| target.strip_prefix(service.target_prefix()))
        .ok_or_else(|| ApiError::client("UnknownOperationException", ""))?;
    let arguments = serde_json::from_str(body)
        .map_err(|error| ApiError::client("SerializationException", error.to_string()))?;
    Ok((action.to_owned(), Arguments::Json(arguments)))
}

fn read_form(service: Service, body: &str) -> Result<(String, Arguments), ApiError> {
    let mut pairs = decode_form(body);
    let mut take = |name: &str| {
        let place = pairs.iter().position(|(key, _)| key == name)?;
        Some(pairs.swap_remove(place).1)
    };
    let action = take("Action")
        .ok_or_else(|| ApiError::client("MissingAction", "The request must contain an Action."))?;
    let version = take("Version").unwrap_or_default();
    let expected = if service == Service::Ec2 { "2016-11-15" } else { "2011-06-15" };
    if version != expected {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("API version {version} is not simulated; expected {expected}."),
        ));
    }
    Ok((action, Arguments::Form(pairs)))
}

impl Incoming {
    /// Value of the role tag in the request.
    pub fn role(&self) -> Option<String> {
        match &self.arguments {
            Arguments::Form(pairs) => {
                let (key, _) =
                    pairs.iter().find(|(key, value)| key.ends_with(".Key") && value == ROLE_TAG)?;
                let wanted = format!("{}Value", key.strip_suffix("Key")?);
                pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.clone())
            }
            Arguments::Json(request) => request
                .get("Tags")?
                .as_array()?
                .iter()
                .find(|tag| tag.get("Key").and_then(Value::as_str) == Some(ROLE_TAG))?
                .get("Value")?
                .as_str()
                .map(str::to_owned),
        }
    }

    /// Client token.
    pub fn token(&self) -> Option<String> {
        match &self.arguments {
            Arguments::Form(pairs) => {
                pairs.iter().find(|(key, _)| key == "ClientToken").map(|(_, value)| value.clone())
            }
            Arguments::Json(request) => {
                request.get("ClientRequestToken").and_then(Value::as_str).map(str::to_owned)
            }
        }
    }

    /// Every text in the request that could be the id or name of something: what it is about, and
    /// what that refers to.
    pub fn names(&self) -> (Vec<String>, Vec<String>) {
        match &self.arguments {
            Arguments::Form(pairs) => {
                let (nested, top): (Vec<_>, Vec<_>) =
                    pairs.iter().cloned().partition(|(key, _)| key.contains('.'));
                let values = |pairs: Vec<(String, String)>| {
                    pairs.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
                };
                (values(top), values(nested))
            }
            Arguments::Json(request) => {
                let mut texts = Vec::new();
                collect_texts(request, &mut texts);
                (texts, Vec::new())
            }
        }
    }

    /// What decides about dependants.
    pub fn traits(&self) -> Traits {
        match &self.arguments {
            Arguments::Form(pairs) => Traits {
                tags: pairs.iter().any(|(key, _)| key.starts_with("TagSpecification.")),
                profile: pairs.iter().any(|(key, _)| key.starts_with("IamInstanceProfile.")),
            },
            Arguments::Json(request) => Traits {
                tags: request
                    .get("Tags")
                    .and_then(Value::as_array)
                    .is_some_and(|tags| !tags.is_empty()),
                profile: false,
            },
        }
    }

    /// Neither filter, id nor page size.
    pub fn is_unfiltered(&self) -> bool {
        match &self.arguments {
            Arguments::Form(pairs) => pairs.iter().all(|(key, _)| key == "NextToken"),
            Arguments::Json(_) => false,
        }
    }
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| collect_texts(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
