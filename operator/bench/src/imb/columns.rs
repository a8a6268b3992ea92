//! The columns of Intel MPI Benchmarks.

use crate::labels::{Kind, Label, Labels, compile, fact, number};
use crate::parsed::Better::{Higher, Lower};

const LABELS: &[Label] = &[
    fact(r"#bytes", "size", "B", Kind::Size),
    fact(r"Group", "group", "", Kind::Count),
    fact(r"#repetitions", "repetitions", "", Kind::Count),
    number(r"t\[usec\]", "t", "us", Lower),
    number(r"t_min\[usec\]", "t_min", "us", Lower),
    number(r"t_max\[usec\]", "t_max", "us", Lower),
    number(r"t_avg\[usec\]", "t_avg", "us", Lower),
    number(r"t_ovrl\[usec\]", "t_ovrl", "us", Lower),
    number(r"t_pure\[usec\]", "t_pure", "us", Lower),
    number(r"t_CPU\[usec\]", "t_cpu", "us", Lower),
    number(r"overlap\[%\]", "overlap_pct", "%", Higher),
    number(r"Mbytes/sec", "bandwidth", "MB/s", Higher),
    number(r"Msg/sec", "message_rate", "Messages/s", Higher),
    number(r"defects", "defects", "", Lower),
];

/// Every column a version of these programs prints.
pub(super) static COLUMNS: Labels = Labels::new(LABELS, || compile(LABELS));
