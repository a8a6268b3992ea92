//! Parameter Store.

use serde_json::json;

use crate::lab::Lab;

#[tokio::test]
async fn parameters_have_versions_and_are_made_once() {
    let lab = Lab::start().await;
    let put = async |value: &str, overwrite: bool| {
        let request = json!({
            "Name": "/hpcops/u1/demand", "Value": value, "Type": "String", "Overwrite": overwrite,
        });
        lab.ssm("PutParameter", request).await
    };
    assert_eq!(put("a", false).await.value()["Version"], 1);
    assert_eq!(put("b", false).await.code(), "ParameterAlreadyExists");
    assert_eq!(put("b", true).await.value()["Version"], 2);
    assert_eq!(put(&"x".repeat(4097), true).await.code(), "ValidationException");
    assert_eq!(put(&"x".repeat(4096), true).await.code(), "OK");
    assert_eq!(lab.ever("parameter").await, 1);
    let gone = lab.ssm("DeleteParameter", json!({"Name": "/hpcops/u1/demand"})).await;
    assert_eq!(gone.code(), "OK");
    let again = lab.ssm("DeleteParameter", json!({"Name": "/hpcops/u1/demand"})).await;
    assert_eq!(again.code(), "ParameterNotFound");
    assert_eq!(put("c", true).await.value()["Version"], 1);
    assert_eq!(lab.ever("parameter").await, 2);
}

#[tokio::test]
async fn a_path_lists_what_is_below_it() {
    let lab = Lab::start().await;
    for name in ["/hpcops/a", "/hpcops/b/c", "/hpcopsx/d"] {
        let request = json!({"Name": name, "Value": "v", "Type": "String"});
        assert_eq!(lab.ssm("PutParameter", request).await.code(), "OK");
    }
    for (path, recursive, expected) in
        [("/hpcops", false, 1), ("/hpcops", true, 2), ("/hpcops/b/", false, 1), ("/", true, 3)]
    {
        let request = json!({"Path": path, "Recursive": recursive});
        let found = lab.ssm("GetParametersByPath", request).await.value();
        assert_eq!(found["Parameters"].as_array().unwrap().len(), expected, "{path}");
    }
}
