//! The VPC's resolver: knows the private names of running bodies, says "no such
//! name" to all others at once, and asks nobody.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

use tokio::task::AbortHandle;

use super::rack::in_network;
use super::vpc::Vpc;

const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::new(169, 254, 169, 253), 53);
const HEADER: usize = 12;
const TYPE_A: [u8; 2] = [0, 1];
const NO_SUCH_NAME: u8 = 3;

/// Serves in a network until the task is aborted.
pub fn serve(vpc: &Arc<Vpc>) -> std::io::Result<AbortHandle> {
    let bind = || {
        let socket = UdpSocket::bind(ADDRESS)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = in_network(vpc.pid(), bind).and_then(tokio::net::UdpSocket::from_std)?;
    let vpc = Arc::downgrade(vpc);
    let task = tokio::spawn(async move {
        let mut buffer = [0; 1500];
        loop {
            let Ok((size, from)) = socket.recv_from(&mut buffer).await else {
                continue;
            };
            let Some(vpc) = vpc.upgrade() else { return };
            let lookup = |name: &str| vpc.address_of(name);
            if let Some(answer) = buffer.get(..size).and_then(|query| answer(query, lookup)) {
                // A lost answer is asked again, as with any resolver.
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    Ok(task.abort_handle())
}

/// The answer to one query; `None` for what is no query.
fn answer(query: &[u8], lookup: impl Fn(&str) -> Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let (name, end) = name_of(query)?;
    let question = query.get(HEADER..end + 4)?;
    let found = lookup(&name);
    let shown = found.filter(|_| query.get(end..end + 2) == Some(&TYPE_A));
    let code = if found.is_some() { 0 } else { NO_SUCH_NAME };
    let mut answer = query.get(..2)?.to_vec();
    // Response, recursion desired and available; one question, perhaps one answer.
    answer.extend([0x81, 0x80 | code, 0, 1, 0, u8::from(shown.is_some()), 0, 0, 0, 0]);
    answer.extend(question);
    if let Some(address) = shown {
        // The name of the question, type A, class IN, 60 s, four bytes.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// The name asked for and the offset behind it.
fn name_of(query: &[u8]) -> Option<(String, usize)> {
    let mut labels: Vec<String> = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = query.get(at..at + length).filter(|_| length < 64)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let mut query = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend(label.bytes());
        }
        query.extend([0, 0, kind, 0, 1]);
        query
    }

    #[test]
    fn a_known_name_has_an_address_and_an_unknown_one_does_not_exist() {
        let lookup =
            |name: &str| (name == "ip-10-0-0-5.ec2.internal").then_some(Ipv4Addr::new(10, 0, 0, 5));
        for (name, kind, code, count, last) in [
            ("ip-10-0-0-5.ec2.internal", 1, 0, 1, [10, 0, 0, 5]),
            ("ip-10-0-0-5.ec2.internal", 28, 0, 0, [0, 28, 0, 1]),
            ("compute-1.ec2.internal", 1, NO_SUCH_NAME, 0, [0, 1, 0, 1]),
        ] {
            let answer = answer(&query(name, kind), lookup).unwrap();
            assert_eq!(
                (answer[0], answer[1], answer[3] & 15, answer[7]),
                (7, 9, code, count),
                "{name}"
            );
            assert_eq!(answer[answer.len() - 4..], last, "{name}");
        }
    }

    #[test]
    fn a_torn_query_gets_no_answer() {
        for end in 0..20 {
            assert_eq!(answer(&query("ip-10-0-0-5.ec2.internal", 1)[..end], |_| None), None);
        }
    }
}
