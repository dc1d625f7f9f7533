/** Reaches a service of AWS as a worker does: with the SDK's own client, after a look at the way to its endpoint. */
import type { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { networkOf } from "#shared/adapters/net/address-rules.ts";
import { type Way, type WayLink, wayTo } from "#shared/adapters/net/endpoint-way.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, rawMessage } from "#shared/base/errors.ts";
import type { ServiceFinding, ZoneService } from "#shared/fleet/zone-services.ts";

/** Milliseconds for each of the resolver, the connection and the request. */
const patienceMs = 5000;

/** A request that a worker may make anyway, and that changes nothing. */
export interface ServiceProbe {
  readonly service: ZoneService;
  readonly region: string;
  readonly needed: boolean;
  readonly command: object;
  send(options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
}

type Found = Omit<ServiceFinding, "service" | "region" | "needed">;

/** @returns a finding without a remedy. */
export async function reachService({ service, region, needed, command, send }: ServiceProbe): Promise<ServiceFinding> {
  const found = await wayAndAnswer(command, send);
  const state = found.state === "broken" && !needed ? "unneeded" : found.state;
  return { service, region, needed, ...found, state };
}

async function wayAndAnswer(command: object, send: ServiceProbe["send"]): Promise<Found> {
  let host = "";
  let way: Way = { addresses: [] };
  // The SDK knows the host of its request once the request is built.
  (command as GetQueueAttributesCommand).middlewareStack.add(
    (next) => async (step) => {
      const { hostname, protocol, port } = step.request as HttpTarget;
      const tls = protocol !== "http:";
      host = hostname;
      way = await wayTo({ host, port: port ?? (tls ? 443 : 80), tls }, patienceMs);
      if (way.broken !== undefined) throw new WayBroken(way.broken);
      return next(step);
    },
    { step: "build", name: "starlingWay" },
  );
  const answer = await send({ abortSignal: AbortSignal.timeout(3 * patienceMs) }).then(
    () => ({ state: "ok" }) as const,
    (error: unknown) => judged(error),
  );
  const [first] = way.addresses;
  const network = first === undefined ? undefined : networkOf(first);
  return { host, addresses: way.addresses, ...defined({ network }), ...answer };
}

interface HttpTarget {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
}

class WayBroken extends Error {
  readonly broken: NonNullable<Way["broken"]>;

  constructor(broken: NonNullable<Way["broken"]>) {
    super(broken.message);
    this.broken = broken;
  }
}

type Judged = Pick<Found, "state" | "link" | "code" | "message">;

/** Codes of services that do not accept the signature, or its session. */
const tokenCodes =
  /^(UnrecognizedClient|InvalidClientTokenId|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|ExpiredToken|RequestExpired|RequestTimeTooSkewed|MissingAuthenticationToken|InvalidAccessKeyId|CredentialsProviderError)/;

/** Any other answer of the service shows that the way holds: the probes ask for things that do not exist. */
function judged(error: unknown): Judged {
  if (error instanceof WayBroken) return { state: "broken", ...(error.broken satisfies { link: WayLink }) };
  const { name: code = "Error", $metadata } = error as {
    readonly name?: string;
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  const status = $metadata?.httpStatusCode;
  const said = { code, message: errorMessage(error) };
  if (tokenCodes.test(code)) return { state: "broken", link: "token", ...said };
  if (status === undefined) {
    const message = `the connection holds, and the request is not answered: ${said.message}`;
    return { state: "broken", link: "route", code, message };
  }
  if (/VPC endpoint policy/i.test(rawMessage(error))) {
    return { state: "broken", link: "authorization", code: "EndpointPolicy", message: rawMessage(error) };
  }
  if (status === 403) return { state: "limited", link: "authorization", ...said };
  if (status >= 500 || status === 429 || /Throttl|SlowDown|TooManyRequests/.test(code))
    return { state: "unknown", ...said };
  return { state: "ok" };
}
