import { lookup } from "node:dns";
import { closeSync, openSync } from "node:fs";
import { isIP, type LookupFunction } from "node:net";
import { devNull } from "node:os";
import { blockList, ipv4Behind, isIn, reachOf } from "#shared/adapters/net/address-reach.ts";
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
  return {
    refusal(host, address) {
      const reach = reachOf(address);
      if (reach === "never") return neverReached(address);
      if (reach === "public" || hosts.has(host.toLowerCase())) return undefined;
      if ([address, ipv4Behind(address) ?? address].some((each) => isIn(allowed, each))) return undefined;
      return `${address} is not a public address; ask the operator to allow its host or its range`;
    },
  };
}

/** Clusters are in the operator's own networks, so that only impossible addresses are refused. */
export const clusterAddresses: AddressRules = {
  refusal: (_host, address) => (reachOf(address) === "never" ? neverReached(address) : undefined),
};

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
        const reason = rules.refusal(hostname, addresses[0]?.address ?? "") ?? "it has no address";
        callback(addressRefused(hostname, reason), "");
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
  if (reason !== undefined) throw addressRefused(host, reason);
}

function addressRefused(host: string, reason: string): StarlingError {
  return new StarlingError(`Starling does not connect to ${host}: ${reason}`, {
    code: "AddressRefused",
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
