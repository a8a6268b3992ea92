//! XML answers from JSON values: objects are children, arrays are `item`
//! lists (EC2's rule for every list), null is absent.

use serde_json::Value;

/// Escapes text for use between tags.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
    out
}

/// One element with its content.
pub fn element(name: &str, value: &Value, out: &mut String) {
    if value.is_null() {
        return;
    }
    out.push('<');
    out.push_str(name);
    out.push('>');
    content(value, out);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

fn content(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => out.push_str(&escape(text)),
        Value::Array(items) => items.iter().for_each(|item| element("item", item, out)),
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| element(name, member, out));
        }
    }
}

/// A whole EC2 answer.
pub fn document(action: &str, request_id: &str, answer: &Value) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>{request_id}</requestId>"
    );
    content(answer, &mut out);
    out.push_str("</");
    out.push_str(action);
    out.push_str("Response>");
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn renders_objects_lists_and_drops_null() {
        let mut out = String::new();
        element("a", &json!({"b": [1, {"c": "x<&y"}], "d": null, "e": true}), &mut out);
        assert_eq!(out, "<a><b><item>1</item><item><c>x&lt;&amp;y</c></item></b><e>true</e></a>");
    }
}
