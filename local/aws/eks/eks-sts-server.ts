import type { IncomingMessage, ServerResponse } from "node:http";
import { eksOperation } from "#local/aws/eks/eks-operations.ts";
import { EksRefusal, type EksRegister } from "#local/aws/eks/eks-register.ts";
import { type LocalOrganization, organizationMembers, taggedResources } from "#local/aws/eks/listing-operations.ts";
import { ParameterStore, parametersByPath } from "#local/aws/eks/parameter-operations.ts";
import type { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { isPresigned, verifyPresigned } from "#local/aws/iam/presigned-url.ts";
import { accountOf } from "#local/aws/iam/principal-arns.ts";
import type { AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { queryRefusal } from "#local/aws/iam/signature-refusals.ts";
import { type ArrivingRequest, type Genuine, type Refused, verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import {
  assumeRole,
  getCallerIdentity,
  type StsAnswer,
  StsRefusal,
  stsErrorJson,
  stsErrorXml,
  stsJson,
  stsXml,
} from "#local/aws/iam/sts-operations.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";
import { defined } from "#shared/base/defined.ts";

/** STS, EKS, and the services that list clusters and accounts. All of them share one port. */
type EksStsService = "sts" | "eks" | ListingService;
type ListingService = "tagging" | "organizations" | "ssm";

/** One request with a valid signature. */
export interface EksStsCall {
  readonly service: EksStsService;
  readonly operation: string;
  /** The region of the signature. Real endpoints have it in their name. */
  readonly region: string;
  readonly principalArn: string;
  readonly accessKeyId: string;
}

export interface CallFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

export interface EksStsServerOptions {
  readonly principals: Principals;
  readonly roles: IamRoles;
  readonly clusters: EksRegister;
  /** Called for each request. The default is no organization. */
  readonly organization?: () => LocalOrganization | undefined;
  /** The default is no parameters. */
  readonly parameters?: ParameterStore;
  /**
   * The clock for sessions and cluster tokens. The default is the machine's clock. Signatures always use the machine's
   * clock.
   */
  readonly now?: () => Date;
  readonly port?: number;
  /** An error to answer with instead of the result. */
  readonly fail?: (call: EksStsCall) => CallFailure | undefined;
}

export interface EksStsServer {
  readonly endpoint: string;
  /** The calls in their order. */
  calls(): readonly EksStsCall[];
  stop(): Promise<void>;
}

interface Signed extends Genuine {
  readonly service: EksStsService;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Above this number only the newest half of the calls stays. */
const maxCalls = 10_000;
const maxBodyBytes = 1024 * 1024;
const scopeFormat = /Credential=[^/\s]+\/\d{8}\/[^/\s]+\/([^/\s]+)\/aws4_request/;
/**
 * The hosts of the presigned URLs in tokens. Clusters send their STS requests to this server, with the real host name.
 */
const stsHosts = /^sts(-fips)?(\.[a-z0-9-]+)*\.(amazonaws\.com(\.cn)?|api\.aws|amazonwebservices\.com\.cn)$/;

/**
 * STS (AssumeRole, GetCallerIdentity, also presigned) and EKS (ListClusters, DescribeCluster, access entries) of every
 * account and region, on one port of 127.0.0.1. The region comes from the signature and the account from the caller.
 */
export async function startEksAndSts(options: EksStsServerOptions): Promise<EksStsServer> {
  const { now = () => new Date() } = options;
  let calls: EksStsCall[] = [];

  function record(call: EksStsCall): void {
    calls.push(call);
    if (calls.length > maxCalls) calls = calls.slice(-maxCalls / 2);
    const failure = options.fail?.(call);
    if (failure !== undefined) throw new StsRefusal(failure.code, failure.message, failure.status);
  }

  async function answerSts(arrived: ArrivingRequest, parameters: URLSearchParams, signed: Signed): Promise<Answer> {
    const action = parameters.get("Action") ?? "";
    const { region, accessKey } = signed;
    record({ service: "sts", operation: action, region, ...accessKeyOf(accessKey) });
    const answer = perform(action, parameters, signed.accessKey);
    return isJson(arrived)
      ? { status: 200, contentType: "application/json", body: stsJson(action, answer) }
      : { status: 200, contentType: "text/xml", body: stsXml(action, answer) };
  }

  function perform(action: string, parameters: URLSearchParams, caller: AccessKey): StsAnswer {
    if (action === "GetCallerIdentity") return getCallerIdentity(caller);
    if (action === "AssumeRole") return assumeRole(parameters, caller, { ...options, now: now() });
    throw new StsRefusal("InvalidAction", `Could not find operation ${action} for version 2011-06-15`, 400);
  }

  async function answerEks({ method, url }: ArrivingRequest, { region, accessKey, body }: Signed): Promise<Answer> {
    const { pathname, searchParams } = new URL(url, "http://eks");
    const { principalArn } = accessKey;
    const operation = eksOperation({
      method,
      path: pathname,
      query: searchParams,
      body: body.toString(),
      accountId: accountOf(principalArn),
      region,
      partition: principalArn.split(":")[1] ?? "aws",
    });
    if (operation === undefined) throw new StsRefusal("UnknownOperationException", `${method} ${pathname}`, 404);
    record({ service: "eks", operation: operation.name, region, ...accessKeyOf(accessKey) });
    return {
      status: 200,
      contentType: "application/json",
      body: JSON.stringify(operation.perform(options.clusters)),
    };
  }

  function answerListing(
    { headers }: ArrivingRequest,
    { service, region, accessKey, body }: Signed & { readonly service: ListingService },
  ): Answer {
    const operation = String(headers["x-amz-target"]).split(".").at(-1) ?? "";
    record({ service, operation, region, ...accessKeyOf(accessKey) });
    const request = {
      operation,
      input: JSON.parse(body.toString()),
      accountId: accountOf(accessKey.principalArn),
      region,
    };
    const { clusters, organization, parameters = new ParameterStore() } = options;
    const answers = {
      tagging: () => taggedResources(request, clusters),
      organizations: () => organizationMembers(request, organization?.()),
      ssm: () => parametersByPath(request, parameters),
    };
    return { status: 200, contentType: "application/x-amz-json-1.1", body: JSON.stringify(answers[service]()) };
  }

  /** @throws StsRefusal when the signature is not valid. */
  async function verified(arrived: ArrivingRequest): Promise<Signed> {
    const { principals } = options;
    if (isPresigned(arrived.url)) {
      const verdict = await verifyPresigned(arrived, { principals, service: "sts", now: now() });
      if (verdict.verdict === "refused") throw refusal("sts", verdict);
      return { ...verdict, service: "sts" };
    }
    const service = scopeFormat.exec(arrived.headers.authorization ?? "")?.[1];
    if (!isService(service)) {
      throw new StsRefusal("MissingAuthenticationToken", "Request is missing Authentication Token");
    }
    const verdict = await verifySigV4(arrived, { principals, service, now: () => new Date(), sessionNow: now });
    if (verdict.verdict === "refused") throw refusal(service, verdict);
    return { ...verdict, service };
  }

  async function answer(arrived: ArrivingRequest): Promise<Answer> {
    try {
      const signed = await verified(arrived);
      if (signed.service === "eks") return await answerEks(arrived, signed);
      if (signed.service !== "sts") return answerListing(arrived, { ...signed, service: signed.service });
      const parameters = isPresigned(arrived.url) ? arrived.url.split(/\?(.*)/s)[1] : signed.body.toString();
      return await answerSts(arrived, new URLSearchParams(parameters), signed);
    } catch (error) {
      return errorAnswer(arrived, error);
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers: given } = request;
    const arrived = { method, url, headers: given, body: () => readBytesUpTo(maxBodyBytes, request) };
    const { status, contentType, body, headers } = await answer(arrived);
    response.writeHead(status, { "content-type": contentType, ...headers }).end(body);
  }

  const listening = await serveOnLoopback(
    (request, response) => {
      // An error here means that the sender closed the connection before its request was complete.
      respond(request, response).catch(() => response.destroy());
    },
    { hosts: stsHosts, ...defined({ port: options.port }) },
  );
  return {
    endpoint: listening.origin,
    calls: () => calls,
    stop: () => listening.stop(),
  };
}

function isService(text: string | undefined): text is EksStsService {
  return text === "sts" || text === "eks" || isListing(text);
}

function isListing(text: string | undefined): text is ListingService {
  return text === "tagging" || text === "organizations" || text === "ssm";
}

/** The error of STS or EKS for a request without a valid signature. */
function refusal(service: EksStsService, refused: Refused): StsRefusal {
  const { code, message } = queryRefusal(refused);
  return new StsRefusal(service === "sts" ? code : (eksCodes[code] ?? code), message);
}

/** The error codes of EKS where they differ from those of STS. */
const eksCodes: Readonly<Record<string, string>> = {
  InvalidClientTokenId: "UnrecognizedClientException",
  ExpiredToken: "ExpiredTokenException",
  SignatureDoesNotMatch: "InvalidSignatureException",
};

function accessKeyOf({ principalArn, accessKeyId }: AccessKey): Pick<EksStsCall, "principalArn" | "accessKeyId"> {
  return { principalArn, accessKeyId };
}

function isJson({ headers }: Pick<ArrivingRequest, "headers">): boolean {
  return headers.accept === "application/json";
}

function errorAnswer(arrived: ArrivingRequest, error: unknown): Answer {
  const refusal =
    error instanceof StsRefusal
      ? error
      : error instanceof EksRefusal
        ? new StsRefusal(error.code, error.message, error.code === "ResourceNotFoundException" ? 404 : 400)
        : new StsRefusal("InternalFailure", String(error), 500);
  const { status, code, message } = refusal;
  const service = scopeFormat.exec(arrived.headers.authorization ?? "")?.[1];
  if (isListing(service)) {
    const body = JSON.stringify({ __type: code, message, Message: message });
    return { status, contentType: "application/x-amz-json-1.1", body };
  }
  if (service === "eks") {
    const body = JSON.stringify({ message });
    return { status, contentType: "application/json", headers: { "x-amzn-errortype": code }, body };
  }
  return isJson(arrived)
    ? { status, contentType: "application/json", body: stsErrorJson(refusal) }
    : { status, contentType: "text/xml", body: stsErrorXml(refusal) };
}
