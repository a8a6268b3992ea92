//! Public images: the official ParallelCluster ones by their naming scheme,
//! an older release of each, and a plain Amazon Linux.

/// A machine image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `ami-…`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: &'static str,
    /// Account of the owner.
    pub owner: &'static str,
    /// For example `2026-10-01T00:00:00.000Z`.
    pub created: &'static str,
    /// Root volume in GiB.
    pub root_gib: u32,
    /// Root device.
    pub root_device: &'static str,
}

const PARALLEL_CLUSTER: &str = "247102896272";
const AMAZON_LINUX: &str = "137112412989";

const RELEASES: [(&str, &str, &str); 2] = [
    ("3.16.1", "202610010000", "2026-10-01T00:00:00.000Z"),
    ("3.15.0", "202605010000", "2026-05-01T00:00:00.000Z"),
];

const SYSTEMS: [(&str, &str, &str); 3] = [
    ("amzn2023-hvm", "/dev/xvda", "-"),
    ("ubuntu-2404-lts-hvm", "/dev/sda1", "-"),
    ("ubuntu-2204-lts-hvm", "/dev/sda1", "-"),
];

/// All public images, the same in every region.
pub fn images() -> Vec<Image> {
    let mut all = Vec::new();
    for (version, stamp, created) in RELEASES {
        for (system, root_device, separator) in SYSTEMS {
            for architecture in ["x86_64", "arm64"] {
                all.push(Image {
                    id: format!("ami-0a1b2c3d4e5f{:05x}", 0x61000 + all.len()),
                    name: format!(
                        "aws-parallelcluster-{version}-{system}{separator}{architecture}-{stamp}"
                    ),
                    architecture,
                    owner: PARALLEL_CLUSTER,
                    created,
                    root_gib: 45,
                    root_device,
                });
            }
        }
    }
    all.extend(["x86_64", "arm64"].into_iter().zip(0x62000_u32..).map(amazon_linux));
    all
}

fn amazon_linux((architecture, number): (&'static str, u32)) -> Image {
    Image {
        id: format!("ami-0a1b2c3d4e5f{number:05x}"),
        name: format!("al2023-ami-2023.9.20260915.0-kernel-6.1-{architecture}"),
        architecture,
        owner: AMAZON_LINUX,
        created: "2026-09-15T00:00:00.000Z",
        root_gib: 8,
        root_device: "/dev/xvda",
    }
}
