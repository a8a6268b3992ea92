//! STS: who am I.

use serde_json::{Value, json};

use crate::call::Call;
use crate::wire::{ApiError, Params, xml_element};

/// Performs an STS action.
pub fn perform(call: &mut Call<'_>, action: &str, params: Params) -> Result<Value, ApiError> {
    if action != "GetCallerIdentity" {
        return Err(ApiError::client(
            "InvalidAction",
            format!("Could not find operation {action} for version 2011-06-15"),
        ));
    }
    params.finish()?;
    let account = &call.account.id;
    Ok(json!({
        "Arn": format!("arn:aws:iam::{account}:user/hpcops"),
        "UserId": "AIDA0SIMULATED",
        "Account": account,
    }))
}

/// The answer in STS's own wrapping.
pub fn document(action: &str, request_id: &str, answer: &Value) -> String {
    let mut out = format!("<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">");
    xml_element(&format!("{action}Result"), answer, &mut out);
    xml_element("ResponseMetadata", &json!({"RequestId": request_id}), &mut out);
    out.push_str("</");
    out.push_str(action);
    out.push_str("Response>");
    out
}
