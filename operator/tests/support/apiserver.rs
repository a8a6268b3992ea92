//! As much of an API server as the shell's writes need: one object, versions and preconditions,
//! the status subresource, finalizers, events.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use hpc_crds::HpcCluster;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// The server, shared by those who look at it.
#[derive(Clone)]
pub struct ApiServer(Arc<Mutex<Store>>);

struct Store {
    object: Option<Value>,
    version: u64,
    writes: Vec<String>,
}

type Answer = (StatusCode, Value);

impl ApiServer {
    /// A server that holds this object.
    pub fn with(object: Value) -> Self {
        let mut store = Store { object: None, version: 100, writes: Vec::new() };
        store.put(object);
        Self(Arc::new(Mutex::new(store)))
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        let store = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let store = Arc::clone(&store);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let path = head.uri.path().to_owned();
                let (status, answer) = store.lock().unwrap().answer(&head.method, &path, &body);
                let answer = Body::from(serde_json::to_vec(&answer).unwrap());
                let response = Response::builder().status(status).body(answer).unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "cfd")
    }

    /// The stored object.
    pub fn object(&self) -> Option<HpcCluster> {
        let object = self.0.lock().unwrap().object.clone()?;
        Some(serde_json::from_value(object).unwrap())
    }

    /// The spec exactly as stored.
    pub fn spec(&self) -> Value {
        self.0.lock().unwrap().object.as_ref().unwrap()["spec"].clone()
    }

    /// What was written so far: method and path.
    pub fn writes(&self) -> Vec<String> {
        self.0.lock().unwrap().writes.clone()
    }

    /// Somebody else changes the object.
    pub fn touch(&self) {
        let mut store = self.0.lock().unwrap();
        let mut object = store.object.clone().unwrap();
        object["metadata"]["annotations"]["touched"] = json!(store.version.to_string());
        store.put(object);
    }

    /// Somebody deletes the object.
    pub fn delete(&self) {
        let mut store = self.0.lock().unwrap();
        let mut object = store.object.clone().unwrap();
        object["metadata"]["deletionTimestamp"] = json!("2026-11-30T10:00:00Z");
        store.put(object);
    }
}

impl Store {
    fn put(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let finalizers = object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        let leaves = object["metadata"].get("deletionTimestamp").is_some() && finalizers == 0;
        self.object = (!leaves).then_some(object);
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> Answer {
        if path.ends_with("/events") {
            self.writes.push(format!("{method} {}", body["reason"].as_str().unwrap_or_default()));
            return (StatusCode::CREATED, body.clone());
        }
        // A write that names a version of what is gone is a conflict, as in the real one.
        let Some(mut object) = self.object.clone() else { return refusal(409, "Conflict") };
        let expected = &body["metadata"]["resourceVersion"];
        if !expected.is_null() && *expected != object["metadata"]["resourceVersion"] {
            return refusal(409, "Conflict");
        }
        match (method, path.ends_with("/status")) {
            (&Method::PUT, true) => object["status"] = body["status"].clone(),
            (&Method::PATCH, false) => {
                assert!(body.get("spec").is_none() && body.get("status").is_none(), "{body}");
                object["metadata"]["finalizers"] = body["metadata"]["finalizers"].clone();
            }
            other => panic!("the shell never does {other:?} on {path}"),
        }
        self.writes.push(format!("{method} {}", path.rsplit('/').next().unwrap()));
        self.put(object.clone());
        (StatusCode::OK, self.object.clone().unwrap_or(object))
    }
}

fn refusal(code: u16, reason: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": reason,
    });
    (StatusCode::from_u16(code).unwrap(), status)
}
