import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import { defined } from "#shared/base/defined.ts";

export interface SecretStoreOptions {
  readonly stateDir?: string;
  readonly region?: string;
}

export interface SecretStore {
  /** @throws SecretsError in the words of AWS. */
  perform(operation: string, request: unknown): Promise<object>;
}

/** An error of the service. `code` is the error name in SDK clients. */
export class SecretsError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

interface SecretRequest {
  readonly Name?: string;
  readonly Description?: string;
  readonly SecretId?: string;
  readonly SecretString?: string;
  readonly SecretBinary?: string;
  readonly ClientRequestToken?: string;
  readonly VersionId?: string;
  readonly VersionStage?: string;
}

interface Version {
  readonly id: string;
  readonly secretString?: string;
  /** Base64, as sent. */
  readonly secretBinary?: string;
  readonly createdSeconds: number;
}

interface Secret {
  readonly name: string;
  readonly description?: string;
  readonly arn: string;
  readonly createdSeconds: number;
  readonly changedSeconds: number;
  readonly versions: Readonly<Record<string, Version>>;
  /** Version ids by staging label. */
  readonly stages: Readonly<Record<string, string>>;
}

const current = "AWSCURRENT";
const previous = "AWSPREVIOUS";

/** Secrets with versions. With a state folder, each operation is written to disk before its answer. */
export async function createSecretStore({ stateDir, region = localRegion }: SecretStoreOptions): Promise<SecretStore> {
  const file = stateDir === undefined ? undefined : join(stateDir, "secrets.json");
  if (stateDir !== undefined) await mkdir(stateDir, { recursive: true });
  const secrets = new Map<string, Secret>(Object.entries(file === undefined ? {} : await load(file)));
  let saving = Promise.resolve();

  function find(secretId: string | undefined): Secret {
    for (const secret of secrets.values()) {
      const partialArn = secret.arn.slice(0, -7);
      if (secretId === secret.name || secretId === secret.arn || secretId === partialArn) return secret;
    }
    throw new SecretsError("ResourceNotFoundException", "Secrets Manager can't find the specified secret.");
  }

  async function store(secret: Secret): Promise<void> {
    secrets.set(secret.name, secret);
    if (file === undefined) return;
    saving = saving.catch(() => {}).then(() => save(file, Object.fromEntries(secrets)));
    await saving;
  }

  async function create(request: SecretRequest): Promise<object> {
    const { Name: name = "", Description } = request;
    if (!/^[\w/+=.@-]{1,512}$/.test(name)) {
      throw new SecretsError(
        "ValidationException",
        "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
      );
    }
    if (secrets.has(name)) {
      throw new SecretsError(
        "ResourceExistsException",
        `The operation failed because the secret ${name} already exists.`,
      );
    }
    const suffix = createHash("sha256").update(`${name} ${randomUUID()}`).digest("hex").slice(0, 6);
    const empty: Secret = {
      name,
      ...defined({ description: Description }),
      arn: `arn:aws:secretsmanager:${region}:${localAccountId}:secret:${name}-${suffix}`,
      createdSeconds: Date.now() / 1000,
      changedSeconds: Date.now() / 1000,
      versions: {},
      stages: {},
    };
    const hasValue = request.SecretString !== undefined || request.SecretBinary !== undefined;
    const secret = hasValue ? withVersion(empty, request) : empty;
    await store(secret);
    return { ARN: secret.arn, Name: name, ...(hasValue ? { VersionId: secret.stages[current] } : {}) };
  }

  async function put(request: SecretRequest): Promise<object> {
    const secret = withVersion(find(request.SecretId), request);
    await store(secret);
    const VersionId = request.ClientRequestToken ?? secret.stages[current];
    return { ARN: secret.arn, Name: secret.name, VersionId, VersionStages: stagesOf(secret, VersionId) };
  }

  function get({ SecretId, VersionId, VersionStage }: SecretRequest): object {
    const secret = find(SecretId);
    const id = VersionId ?? secret.stages[VersionStage ?? current];
    const version = id === undefined ? undefined : secret.versions[id];
    if (version === undefined) {
      const which = VersionId === undefined ? `staging label: ${VersionStage ?? current}` : `VersionId: ${VersionId}`;
      throw new SecretsError(
        "ResourceNotFoundException",
        `Secrets Manager can't find the specified secret value for ${which}`,
      );
    }
    return {
      ARN: secret.arn,
      Name: secret.name,
      VersionId: version.id,
      ...defined({ SecretString: version.secretString, SecretBinary: version.secretBinary }),
      VersionStages: stagesOf(secret, version.id),
      CreatedDate: version.createdSeconds,
    };
  }

  function describe({ SecretId }: SecretRequest): object {
    const secret = find(SecretId);
    const versions = Object.keys(secret.versions).map((id) => [id, stagesOf(secret, id)] as const);
    return {
      ARN: secret.arn,
      Name: secret.name,
      ...defined({ Description: secret.description }),
      CreatedDate: secret.createdSeconds,
      LastChangedDate: secret.changedSeconds,
      VersionIdsToStages: Object.fromEntries(versions.filter(([, stages]) => stages.length > 0)),
    };
  }

  return {
    async perform(operation, request) {
      switch (operation) {
        case "CreateSecret":
          return create(request as SecretRequest);
        case "PutSecretValue":
          return put(request as SecretRequest);
        case "GetSecretValue":
          return get(request as SecretRequest);
        case "DescribeSecret":
          return describe(request as SecretRequest);
        default:
          throw new SecretsError(
            "UnknownOperationException",
            `the local Secrets Manager does not support ${operation}`,
          );
      }
    },
  };
}

/** The secret with a new current version. Putting the same version again changes nothing. */
function withVersion(secret: Secret, request: SecretRequest): Secret {
  const { SecretString, SecretBinary, ClientRequestToken: id = randomUUID() } = request;
  if ((SecretString === undefined) === (SecretBinary === undefined)) {
    throw new SecretsError("InvalidRequestException", "You must provide either SecretString or SecretBinary.");
  }
  const existing = secret.versions[id];
  if (existing !== undefined) {
    if (existing.secretString === SecretString && existing.secretBinary === SecretBinary) return secret;
    throw new SecretsError(
      "ResourceExistsException",
      `You can't use ClientRequestToken ${id} because that value is already in use for a version of secret ${secret.arn}.`,
    );
  }
  const version: Version = {
    id,
    ...defined({ secretString: SecretString, secretBinary: SecretBinary }),
    createdSeconds: Date.now() / 1000,
  };
  const replaced = secret.stages[current];
  return {
    ...secret,
    changedSeconds: version.createdSeconds,
    versions: { ...secret.versions, [id]: version },
    stages: { ...secret.stages, ...(replaced === undefined ? {} : { [previous]: replaced }), [current]: id },
  };
}

function stagesOf(secret: Secret, versionId: string | undefined): string[] {
  return Object.entries(secret.stages).flatMap(([stage, id]) => (id === versionId ? [stage] : []));
}

async function load(file: string): Promise<Record<string, Secret>> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Record<string, Secret>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Error(`cannot read secrets from ${file}; repair or delete the file`, { cause: error });
  }
}

async function save(file: string, secrets: Readonly<Record<string, Secret>>): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(secrets), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
