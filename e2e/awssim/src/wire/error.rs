//! The one error every simulated action answers with.

use serde_json::{Value, json};

use super::{Service, xml_escape};

/// An AWS error: HTTP status, code and message, plus the modelled extra
/// members of JSON services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// AWS error code.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Extra members of a JSON error shape, for example `Limit`.
    pub fields: Vec<(&'static str, String)>,
}

impl ApiError {
    /// An error of the caller: HTTP 400.
    pub fn client(code: &str, message: impl Into<String>) -> Self {
        Self::with_status(400, code, message)
    }

    /// An error with any status.
    pub fn with_status(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), fields: Vec::new() }
    }

    /// `InvalidParameterValue` in EC2's words.
    pub fn invalid_value(parameter: &str, value: &str, why: &str) -> Self {
        Self::client(
            "InvalidParameterValue",
            format!("Value ({value}) for parameter {parameter} is invalid. {why}"),
        )
    }

    /// `MissingParameter` in EC2's words.
    pub fn missing(parameter: &str) -> Self {
        Self::client(
            "MissingParameter",
            format!("The request must contain the parameter {parameter}"),
        )
    }

    /// `UnknownParameter` in EC2's words.
    pub fn unknown_parameter(parameter: &str) -> Self {
        Self::client("UnknownParameter", format!("The parameter {parameter} is not recognized"))
    }

    /// `InvalidParameterCombination`.
    pub fn combination(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterCombination", message)
    }

    /// Adds a modelled member (JSON services only).
    #[must_use]
    pub fn field(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// The body as the service would write it.
    pub fn render(&self, service: Service, request_id: &str) -> String {
        match service {
            Service::Ec2 => self.render_ec2(request_id),
            Service::Sts => self.render_query(request_id),
            Service::Fsx | Service::Ssm => self.render_json(service),
        }
    }

    fn render_ec2(&self, request_id: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{}</Code>\
             <Message>{}</Message></Error></Errors><RequestID>{request_id}</RequestID></Response>",
            xml_escape(&self.code),
            xml_escape(&self.message)
        )
    }

    fn render_query(&self, request_id: &str) -> String {
        format!(
            "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error>\
             <Type>Sender</Type><Code>{}</Code><Message>{}</Message></Error>\
             <RequestId>{request_id}</RequestId></ErrorResponse>",
            xml_escape(&self.code),
            xml_escape(&self.message)
        )
    }

    /// FSx spells the member `Message`, SSM `message`: both as captured from
    /// the services' models, where a client looks for either.
    fn render_json(&self, service: Service) -> String {
        let spelling = if service == Service::Fsx { "Message" } else { "message" };
        let mut body = serde_json::Map::new();
        body.insert("__type".to_owned(), json!(self.code));
        body.insert(spelling.to_owned(), json!(self.message));
        for (name, value) in &self.fields {
            body.insert((*name).to_owned(), json!(value));
        }
        Value::Object(body).to_string()
    }
}
