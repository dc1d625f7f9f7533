/** The session with which workers in another account or region read and write what the installation stores. */
import { isExpired } from "#shared/adapters/aws/in-new-session.ts";
import { RoleSessions, type SessionCredentials } from "#shared/adapters/aws/role-sessions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { ClusterClients, DataClients } from "#shared/lambda/cluster-clients.ts";

export interface DataSessionOptions {
  /** ARN of the data role, in the account of `home`. */
  readonly role: string;
  /** Region of the table, the bucket and the queues. */
  readonly region: string;
  readonly zone: string;
  readonly clock: Clock;
}

/** Without a role and a region: in a zone that is where `home` is. */
interface PossibleSession extends Pick<DataSessionOptions, "zone" | "clock"> {
  readonly role: string | undefined;
  readonly region: string | undefined;
}

/** In a zone of another account or region, rows, blobs and the queues of `home` need a role of the account of `home`. */
export function clientsForData(aws: ClusterClients, { role, region, zone, clock }: PossibleSession): DataClients {
  return role === undefined || region === undefined ? aws : dataClients(aws, { role, region, zone, clock });
}

/**
 * The SDK keeps credentials until five minutes before their end, also those that AWS refuses by then. With an end this
 * near it asks before each request, and the sessions are kept here.
 */
const askAgainMs = 60_000;

/**
 * Clients with sessions of the data role. A session is renewed before its end, and when AWS calls it expired.
 * @returns clients whose requests fail with `DataRoleDenied` or `DataRoleUnavailable` while there is no session.
 */
export function dataClients(
  aws: Pick<ClusterClients, "sts" | "dataIn">,
  { role, region, zone, clock }: DataSessionOptions,
): DataClients {
  const sessions = new RoleSessions({ sts: aws.sts, clock, sessionName: `starling-${zone}` });
  let last: SessionCredentials | undefined;
  let ended: SessionCredentials | undefined;
  const credentials = async () => {
    try {
      last = await sessions.credentials({ role: { arn: role } }, ended === undefined ? {} : { ended });
    } catch (error) {
      throw withoutSession(error, { role, zone });
    }
    return { ...last, expiration: new Date(Date.now() + askAgainMs) };
  };
  const clients = aws.dataIn({ region, credentials });
  for (const client of [clients.dynamo, clients.sqs, clients.s3]) {
    (client as DataClients["sqs"]).middlewareStack.add(
      (next) => async (request) => {
        const used = last;
        try {
          return await next(request);
        } catch (error) {
          // A session that another request has renewed meanwhile stays.
          if (isExpired(error) && used === last) ended = last;
          throw error;
        }
      },
      { step: "finalizeRequest", priority: "low", name: "endOfDataSession" },
    );
  }
  return clients;
}

/** @returns an error that names the zone and the remedy; one that is not of STS stays as it is. */
function withoutSession(error: unknown, { role, zone }: Pick<DataSessionOptions, "role" | "zone">): unknown {
  if (!(error instanceof StarlingError)) return error;
  const isDenied = errorCode(error) === "RoleDenied";
  const said = errorMessage(error.cause);
  const message = isDenied
    ? `zone ${zone} may not read and write the rows of home: STS refused role ${role}: ${said}; deploy the control stack and the stack of the zone, and check that no policy of an organization denies the role of the zone sts:AssumeRole`
    : `zone ${zone} has no session for the rows of home: STS gave none of role ${role}: ${said}; check that the network of the zone reaches STS of its own region`;
  return new StarlingError(message, {
    code: isDenied ? "DataRoleDenied" : "DataRoleUnavailable",
    retry: "transient",
    data: { role, zone },
    cause: error,
  });
}
