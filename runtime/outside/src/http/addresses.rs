//! Addresses that may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The addresses that one connection may go to. The check applies to the address that is used for the connection: a name
/// is looked up once, and the client connects to the result of that look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addresses {
    /// All addresses.
    Any,
    /// Addresses of the public internet: no loopback, private, link-local or metadata address, nor an IPv6 address that stands for
    /// such a one; and those of the networks.
    PublicAnd(Vec<IpNet>),
    /// Addresses of the networks alone, for connections that are not encrypted.
    Only(Vec<IpNet>),
}

/// The reason why a connection is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The address is not public, and not listed.
    #[error("connections to {0} are not allowed: it is no address of the public internet")]
    Address(IpAddr),
    /// The connection would not be encrypted, and its address is not listed.
    #[error("connections without encryption are not allowed but to listed addresses")]
    Unencrypted,
}

impl Refused {
    /// Error code of steps, sources and connectors that are refused.
    pub const CODE: &str = "egress-refused";
    /// Advice for whoever reads the error.
    pub const HINT: &str = "the operator of the service can list the address or its network under `egress`";
}

/// IPv4 networks that are not public, each with the length of its prefix in bits.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Carriers' own; one cloud's metadata are among them.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::LOCALHOST, 8),
    // Azure's interface of the host, at an address that looks public.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local; the metadata of most clouds are at 169.254.169.254.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Of many receivers, reserved, and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::BROADCAST, 32),
];

/// IPv6 networks inside the global range (`2000::/3`) that lead nowhere or to an IPv4 address, each with the length of
/// its prefix in bits.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 4] = [
    // Protocol assignments: Teredo, benchmarks, identifiers.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

impl Addresses {
    /// Returns an error if connections to an address are not allowed.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), Refused> {
        // A mapped address is the one that it stands for.
        let is_listed = |listed: &[IpNet]| {
            let address = address.to_canonical();
            listed.iter().any(|network| network.contains(&address))
        };
        match self {
            Self::PublicAnd(listed) if !is_public(address) && !is_listed(listed) => {
                Err(Refused::Address(address))
            }
            Self::Only(listed) if !is_listed(listed) => Err(Refused::Unencrypted),
            _ => Ok(()),
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match stands_for(address) {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let lies_in = |(network, length): &(Ipv4Addr, u32)| (bits ^ network.to_bits()) >> (32 - length) == 0;
    !NOT_PUBLIC_V4.iter().any(lies_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let lies_in = |(network, length): &(Ipv6Addr, u32)| (bits ^ network.to_bits()) >> (128 - length) == 0;
    bits >> 125 == 1 && !NOT_PUBLIC_V6.iter().any(lies_in)
}

/// Returns the IPv4 address that packets to an IPv6 address reach: a mapped address, or an address behind NAT64.
fn stands_for(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(address: &str) -> bool {
        let public = Addresses::PublicAnd(Vec::new());
        public.check(address.parse().unwrap()).is_ok()
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_allowed(address), "{address}");
        }
    }

    #[test]
    fn loopback_private_link_local_and_metadata_addresses_are_refused_in_every_form() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1.1.1.1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_allowed(address), "{address}");
        }
    }

    #[test]
    fn listed_networks_are_allowed_and_their_neighbours_are_not() {
        let listed: Vec<IpNet> = vec!["10.1.0.0/16".parse().unwrap(), "fd00::/64".parse().unwrap()];
        let (public, only) = (Addresses::PublicAnd(listed.clone()), Addresses::Only(listed));
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd00::5"] {
            let address = address.parse().unwrap();
            assert_eq!((public.check(address), only.check(address)), (Ok(()), Ok(())));
        }
        for address in [
            "10.2.0.1",
            "::ffff:10.2.0.1",
            "fd00:0:0:1::5",
            "64:ff9b::10.1.2.3",
        ] {
            let address = address.parse().unwrap();
            let refused = (Err(Refused::Address(address)), Err(Refused::Unencrypted));
            assert_eq!((public.check(address), only.check(address)), refused);
        }
        let outside = "1.1.1.1".parse().unwrap();
        assert_eq!(
            (public.check(outside), only.check(outside)),
            (Ok(()), Err(Refused::Unencrypted))
        );
        assert_eq!(Addresses::Any.check(IpAddr::V4(Ipv4Addr::LOCALHOST)), Ok(()));
    }
}
