//! JSON 1.1 requests: typed decoding that refuses unknown members.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ApiError;

/// Decodes a request into its shape. Unknown members are refused: a member
/// the simulator does not act on must never look accepted.
pub fn decode<T: DeserializeOwned>(request: &Value) -> Result<T, ApiError> {
    T::deserialize(request).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
            Some(name) => ApiError::unknown_parameter(name),
            None => ApiError::client("SerializationException", text),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "PascalCase", deny_unknown_fields)]
    struct Shape {
        #[expect(dead_code, reason = "only its presence in the shape matters")]
        name: Option<String>,
    }

    #[test]
    fn names_the_unknown_member_and_the_wrong_type() {
        let code =
            |request: Value| decode::<Shape>(&request).map(|_| ()).map_err(|e| (e.code, e.message));
        assert_eq!(code(json!({"Name": "a"})), Ok(()));
        assert_eq!(
            code(json!({"Nmae": "a"})),
            Err(("UnknownParameter".into(), "The parameter Nmae is not recognized".into()))
        );
        assert_eq!(code(json!({"Name": 3})).unwrap_err().0, "SerializationException");
    }
}
