import { lookup } from "node:dns";
import { closeSync, openSync } from "node:fs";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { devNull } from "node:os";
import { StarlingError } from "#shared/base/errors.ts";

/** The hosts that a URL of another author may reach. */
export interface AddressRules {
  /** @returns why the address must not be reached for the host, or undefined when it may be. */
  refusal(host: string, address: string): string | undefined;
}

/**
 * The public internet, and what the operator also allows: host names (`git.corp.example`), addresses and ranges
 * (`10.20.0.0/16`), separated by commas.
 * @throws StarlingError `InvalidAllowList` with the entry.
 */
export function addressRules(allow: string): AddressRules {
  const isAllowed = allowList(allow);
  return {
    refusal(host, address) {
      const reach = reachOf(address);
      if (reach === "never") return neverReached(address);
      if (reach === "public" || isAllowed(host, address)) return undefined;
      if (isLoopback(address)) return `${address} is an address of the machine that asks; correct the URL`;
      return `${address} is not a public address; ask the operator to allow its host or its range`;
    },
  };
}

/** Clusters are in the operator's own networks, so that only impossible addresses are refused. */
export const clusterAddresses: AddressRules = {
  refusal: (_host, address) => (reachOf(address) === "never" ? neverReached(address) : undefined),
};

/**
 * The same for a function that works on clusters: on its own machine there is no cluster, but the runtime API of Lambda.
 * @param allow - as in `addressRules`: addresses of its own machine that it may reach.
 * @throws StarlingError `InvalidAllowList` with the entry.
 */
export function workerAddresses(allow: string): AddressRules {
  const isAllowed = allowList(allow);
  return {
    refusal(host, address) {
      const refused = clusterAddresses.refusal(host, address);
      if (refused !== undefined || !isLoopback(address) || isAllowed(host, address)) return refused;
      return `${address} is an address of the machine that asks, on which there is no cluster; correct the URL`;
    },
  };
}

/**
 * @returns whether an entry of the list names the host or the address. A range that is wider than the loopback network does
 * not name the function's own machine, where Lambda's runtime API listens. @throws StarlingError `InvalidAllowList`
 */
function allowList(allow: string): (host: string, address: string) => boolean {
  const hosts = new Set<string>();
  const ranges: string[] = [];
  for (const entry of allow.split(",").map((part) => part.trim().toLowerCase())) {
    if (entry === "") continue;
    if (isRange(entry)) ranges.push(entry);
    else if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(entry)) hosts.add(entry);
    else {
      throw new StarlingError(
        `"${entry}" in the list of allowed addresses is not a host name, an address or a range; write git.corp.example or 10.20.0.0/16`,
        { code: "InvalidAllowList", retry: "permanent", data: { entry } },
      );
    }
  }
  const allowed = blockList(ranges);
  const onOwnMachine = blockList(ranges.filter((range) => isLoopback(range.replace(/\/.*$/, ""))));
  return (host, address) => {
    const list = isLoopback(address) ? onOwnMachine : allowed;
    return hosts.has(host.toLowerCase()) || [address, ipv4Behind(address) ?? address].some((each) => isIn(list, each));
  };
}

/** The kind of network that has the address; undefined for one of this machine, and for one that nothing has. */
export function networkOf(address: string): "private" | "public" | undefined {
  const reach = reachOf(address);
  if (reach === "never" || isLoopback(address)) return undefined;
  return reach === "internal" ? "private" : "public";
}

function neverReached(address: string): string {
  return `${address} is a link-local or reserved address; correct the URL`;
}

/**
 * A socket's lookup that returns only allowed addresses. The check is on the address of the actual connection, so that
 * a name that changes its answer (DNS rebinding) does not help an attacker.
 */
export function guardedLookup(rules: AddressRules): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(missingDescriptor() ?? error, "");
        return;
      }
      const reachable = addresses.filter(({ address }) => rules.refusal(hostname, address) === undefined);
      const first = reachable[0];
      if (first === undefined) {
        const address = addresses[0]?.address ?? "";
        const reason = rules.refusal(hostname, address) ?? "it has no address";
        callback(addressRefused({ host: hostname, address }, reason), "");
        return;
      }
      if (options.all === true) callback(null, reachable);
      else callback(null, first.address, first.family);
    });
  };
}

/** Without a free file descriptor, the resolver says of every name that it does not exist. */
function missingDescriptor(): Error | undefined {
  try {
    closeSync(openSync(devNull, "r"));
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** A socket skips the lookup for a literal address, so that such a URL is checked before. @throws StarlingError */
export function refuseLiteralAddress(rules: AddressRules, url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) === 0) return;
  const reason = rules.refusal(host, host);
  if (reason !== undefined) throw addressRefused({ host, address: host }, reason);
}

/** Its data say of which network the address is: an operator may allow private ones. */
function addressRefused(
  { host, address }: { readonly host: string; readonly address: string },
  reason: string,
): StarlingError {
  return new StarlingError(`Starling does not connect to ${host}: ${reason}`, {
    code: "AddressRefused",
    retry: "permanent",
    data: { host, network: networkOf(address) },
  });
}

function isRange(text: string): boolean {
  const [address = "", prefix] = text.split("/");
  const family = isIP(address);
  if (family === 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

/**
 * The destination of an address. `public` is the internet. `internal` is reached only if the operator allows it. `never`
 * leads to the machine's own credentials, or is not the address of a single machine.
 */
type AddressReach = "public" | "internal" | "never";

/**
 * Link-local addresses, at which clouds answer with data about the machine; other such addresses (AWS `fd00:ec2::/32`,
 * Alibaba Cloud 100.100.100.200, Azure 168.63.129.16, Oracle Cloud 192.0.0.192); multicast; unspecified addresses.
 */
const never = blockList([
  "0.0.0.0/8",
  "100.100.100.200",
  "168.63.129.16",
  "169.254.0.0/16",
  "192.0.0.192",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "fe80::/10",
  "fd00:ec2::/32",
  "ff00::/8",
]);

/**
 * The addresses that IANA's registries of special-purpose addresses do not call globally reachable, and obsolete
 * tunnels.
 */
const internal = blockList([
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
]);

const loopback = blockList(["127.0.0.0/8", "::1/128"]);

/** Whether the address is one of the own machine, in any spelling. */
function isLoopback(address: string): boolean {
  if (isIP(address) === 4) return isIn(loopback, address);
  const within = [ipv4Behind(address) ?? [], ...ipv4Within(bytesOf(address))].flat();
  return [address, ...within].some((each) => isIn(loopback, each));
}

/** The only assigned part of IPv6. All other addresses have a special purpose or none yet. */
const globalUnicast = blockList(["2000::/3"]);

function reachOf(address: string): AddressReach {
  const ipv4 = isIP(address) === 4 ? address : ipv4Behind(address);
  if (ipv4 !== undefined) {
    if (isIn(never, ipv4)) return "never";
    return isIn(internal, ipv4) ? "internal" : "public";
  }
  // An address that begins with zeros is padding of another layout, or a loopback address.
  const tunnelled = ipv4Within(bytesOf(address)).filter((each) => !each.startsWith("0."));
  if (isIn(never, address) || tunnelled.some((each) => isIn(never, each))) return "never";
  return isIn(internal, address) || !isIn(globalUnicast, address) ? "internal" : "public";
}

/**
 * The IPv4 address that an IPv6 address is another spelling of: mapped, or with the well-known NAT64 prefix (RFC 6052).
 */
function ipv4Behind(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const bytes = bytesOf(address);
  const prefix = bytes.subarray(0, 12).toString("hex");
  return prefix === "00000000000000000000ffff" || prefix === "0064ff9b0000000000000000"
    ? dotted(bytes.subarray(12))
    : undefined;
}

/** Every IPv4 address to which an IPv6 address leads if a translator or a tunnel still exists. */
function ipv4Within(bytes: Buffer): readonly string[] {
  const prefix = bytes.toString("hex");
  const last = bytes.subarray(12);
  // IPv4-compatible (RFC 4291) and IPv4-translated (RFC 2765).
  if (prefix.startsWith("0".repeat(24)) || prefix.startsWith("0000000000000000ffff0000")) return [dotted(last)];
  // 6to4 (RFC 3056).
  if (prefix.startsWith("2002")) return [dotted(bytes.subarray(2, 6))];
  // Teredo: the server, and the client with all bits inverted (RFC 4380).
  if (prefix.startsWith("20010000")) return [dotted(bytes.subarray(4, 8)), dotted(last.map((byte) => byte ^ 0xff))];
  // NAT64 with a local prefix (RFC 8215) of 48, 56, 64 or 96 bits, without the ninth byte (RFC 6052).
  if (prefix.startsWith("0064ff9b0001")) {
    const starts = [6, 7, 8].map((start) => [...bytes.subarray(start, 8), ...bytes.subarray(9, start + 5)]);
    return [...starts, last].map(dotted);
  }
  return [];
}

/** The bytes of an IPv6 address. A URL unifies its spellings: hexadecimal, at most one gap, no interface. */
function bytesOf(address: string): Buffer {
  const { hostname } = new URL(`http://[${address.replace(/%.*$/, "")}]`);
  const [left = [], right = []] = hostname
    .slice(1, -1)
    .split("::")
    .map((half) => (half === "" ? [] : half.split(":")));
  const gap = new Array<string>(8 - left.length - right.length).fill("0");
  return Buffer.from([...left, ...gap, ...right].map((group) => group.padStart(4, "0")).join(""), "hex");
}

function dotted(bytes: Iterable<number>): string {
  return [...bytes].join(".");
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    list.addSubnet(address, Number(prefix ?? (family === "ipv4" ? 32 : 128)), family);
  }
  return list;
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}
