import { isDeepStrictEqual } from "node:util";
import { awsLogin, type OwnRole } from "#functions/resolve/aws-login.ts";
import type { StatedCredentials } from "#functions/resolve/credential-forms.ts";
import { installationLogin } from "#functions/resolve/github-app.ts";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import type { UpstreamUse } from "#functions/resolve/upstreams/upstream.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorCode, StarlingError } from "#shared/base/errors.ts";
import { addressIn, type RemoteUpstream } from "#shared/fleet/kinds/source.ts";
import type { HttpRemote, Log, SecretReader, SourceCredentials } from "#shared/ports.ts";

export interface SignInPorts {
  readonly secrets: SecretReader;
  readonly http: HttpRemote;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
  readonly role: OwnRole;
}

export interface SignInUse {
  readonly namespace: string;
  readonly upstream: RemoteUpstream;
  readonly timeLeftMs: () => number;
}

/** The upstream knows who asks, and says no. Other credentials may be let in. */
const refusals: ReadonlySet<string> = new Set(["GitAuthenticationFailed", "AuthenticationFailed"]);
/** A corrected secret may end these: a key that is not read, and a host with another key than in known_hosts. */
const mistakes: ReadonlySet<string> = new Set(["InvalidCredentials", "HostKeyMismatch"]);

type Login = SourceCredentials | undefined;

interface Candidate {
  /** Number of the reading of the secret. */
  readonly reading: number;
  /** Place in the secret, from 0. */
  readonly index: number;
  readonly login: () => Promise<Login>;
}

/**
 * Signs in to the upstream of one Source. The first of the secret's credentials are tried, and the second only if the
 * upstream refused the first. If it refuses all, the secret may have been rotated since it was read: it is read again,
 * once. No login is tried twice for the same work.
 */
export function signIn(use: SignInUse, ports: SignInPorts): UpstreamUse["signedIn"] {
  let taken: { readonly login: Login } | undefined;
  return async (work) => {
    const tried: Login[] = [];
    let failure: unknown;
    let refused = new Set<number>();
    let ended: number | undefined;
    for await (const { reading, index, login } of candidates(use, ports, taken)) {
      if (reading === ended) continue;
      if (index === 0) refused = new Set();
      try {
        const found = await login();
        const isTried = tried.some((each) => isDeepStrictEqual(each, found));
        if (isTried) refused.add(index);
        if (isTried) continue;
        tried.push(found);
        const result = await work(found);
        if (refused.size > 0)
          ports.log.warn("the first credentials of a secret are refused", { secret: secretOf(use) });
        taken = { login: found };
        return result;
      } catch (error) {
        const code = errorCode(error);
        failure = withRefusals(error, refusals.has(code) ? refused.add(index) : refused, use);
        if (mistakes.has(code)) ended = reading;
        else if (!refusals.has(code)) throw failure;
      }
    }
    throw failure;
  };
}

async function* candidates(
  use: SignInUse,
  ports: SignInPorts,
  taken: { readonly login: Login } | undefined,
): AsyncGenerator<Candidate> {
  if (taken !== undefined) yield { reading: 0, index: 0, login: async () => taken.login };
  for (const fresh of [false, true]) {
    const stated = (await readCredentials(use, ports.secrets, { fresh, now: ports.clock.now() })) ?? [undefined];
    for (const [index, each] of stated.entries()) {
      yield { reading: fresh ? 2 : 1, index, login: () => loginOf(each, { ...use, ...ports, fresh }) };
    }
  }
}

async function loginOf(
  stated: StatedCredentials | undefined,
  use: SignInUse & SignInPorts & { readonly fresh: boolean },
): Promise<Login> {
  if (stated?.kind === "githubApp") return installationLogin(stated, use);
  if (stated?.kind !== "aws") return stated;
  const { upstream } = use;
  return awsLogin({ ...use, at: `spec.${upstream.kind}`, address: addressIn(upstream) });
}

/** A failure says which credentials are refused, if the secret has two. */
function withRefusals(error: unknown, refused: ReadonlySet<number>, use: SignInUse): unknown {
  const secret = secretOf(use);
  if (!(error instanceof StarlingError) || secret === undefined || !refused.has(0)) return error;
  if (refused.size === 1 && refusals.has(error.code)) return error;
  const which = refused.size === 1 ? "the first credentials" : "both credentials";
  const { message, code, retry, data } = error;
  return new StarlingError(`${message} (${which} of the secret ${secret} are refused)`, {
    ...{ code, retry, data },
    cause: error,
  });
}

function secretOf({ upstream }: SignInUse): string | undefined {
  return upstream.credentials?.secret;
}
