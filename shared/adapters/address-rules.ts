import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { StarlingError } from "#shared/errors.ts";

/** Never reached, whatever is allowed: link-local addresses answer with the credentials of the machine itself. */
const metadata = blockList([
  "0.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "fe80::/10",
  "fd00:ec2::/32",
  "ff00::/8",
]);

/** Reached only when allowed: loopback, private, shared and translated ranges (RFC 1918, 4193, 6052, 6598). */
const internal = blockList([
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "::1/128",
  "64:ff9b::/96",
  "2002::/16",
  "fc00::/7",
]);

/** Which hosts a URL that somebody else wrote may reach. */
export interface AddressRules {
  /** @returns why the address is not reached for the host, or undefined when it may be. */
  refusal(host: string, address: string): string | undefined;
}

/**
 * The public internet, and what the operator allows besides: host names (`git.corp.example`), addresses and ranges
 * (`10.20.0.0/16`), separated by commas.
 * @throws StarlingError `InvalidAllowList` naming the entry.
 */
export function addressRules(allow: string): AddressRules {
  const hosts = new Set<string>();
  const ranges: string[] = [];
  for (const entry of allow.split(",").map((part) => part.trim().toLowerCase())) {
    if (entry === "") continue;
    if (isRange(entry)) ranges.push(entry);
    else if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(entry)) hosts.add(entry);
    else {
      throw new StarlingError(
        `"${entry}" in the list of allowed addresses is no host name, address or range; write git.corp.example or 10.20.0.0/16`,
        { code: "InvalidAllowList", retry: "permanent", data: { entry } },
      );
    }
  }
  const allowed = blockList(ranges);
  return {
    refusal(host, address) {
      if (contains(metadata, address)) return `${address} is a link-local or reserved address`;
      if (hosts.has(host.toLowerCase()) || contains(allowed, address)) return undefined;
      if (!contains(internal, address)) return undefined;
      return `${address} is a private address; the operator can allow it by host or range`;
    },
  };
}

/**
 * A socket's lookup that gives only addresses the rules let through: the check is made on the address that is connected
 * to, so a name that changes its answer (DNS rebinding) gains nothing.
 */
export function guardedLookup(rules: AddressRules): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(error, "");
        return;
      }
      const reachable = addresses.filter(({ address }) => rules.refusal(hostname, address) === undefined);
      const first = reachable[0];
      if (first === undefined) {
        const reason = rules.refusal(hostname, addresses[0]?.address ?? "") ?? "it has no address";
        callback(addressRefused(hostname, reason), "");
        return;
      }
      if (options.all === true) callback(null, reachable);
      else callback(null, first.address, first.family);
    });
  };
}

/** A socket skips the lookup for a literal address, so URLs with one are checked before. @throws StarlingError */
export function refuseLiteralAddress(rules: AddressRules, url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) === 0) return;
  const reason = rules.refusal(host, host);
  if (reason !== undefined) throw addressRefused(host, reason);
}

function addressRefused(host: string, reason: string): StarlingError {
  return new StarlingError(`${host} is not reached: ${reason}`, {
    code: "GitAddressRefused",
    retry: "permanent",
    data: { host },
  });
}

function isRange(text: string): boolean {
  const [address = "", prefix] = text.split("/");
  const family = isIP(address);
  if (family === 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
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

/** BlockList looks through IPv4-mapped IPv6 addresses (`::ffff:a9fe:a9fe`) by itself. */
function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}
