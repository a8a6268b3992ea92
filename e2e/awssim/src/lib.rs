//! awssim: an independent simulator of the parts of AWS that an HPC cluster
//! operator talks to, over real HTTP.
pub mod machine;
