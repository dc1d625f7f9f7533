/**
 * The roles of Starling's functions may read the secrets of one folder of Secrets Manager for each kind, below the name of the
 * installation. This file finds the names in documents that are not there.
 */
import type { Document, FieldProblem } from "#shared/fleet/kinds/document.ts";
import { upstreamOf } from "#shared/fleet/kinds/source.ts";

const folders = { Source: "git", Receiver: "hooks", Cluster: "clusters" } as const;
type SecretKind = keyof typeof folders;

interface NamedSecret {
  /** `spec.git.credentials.secret` */
  readonly field: string;
  /** A name, or an ARN. */
  readonly secret: string;
  readonly kind: SecretKind;
}

/** The secrets that a document names. */
export function secretsOf(document: Document): readonly NamedSecret[] {
  const named = (field: string, secret: string | undefined, kind: SecretKind): readonly NamedSecret[] =>
    secret === undefined ? [] : [{ field, secret, kind }];
  switch (document.kind) {
    case "Source": {
      const upstream = upstreamOf(document.spec);
      const credentials = "credentials" in upstream ? upstream.credentials : undefined;
      return named(`spec.${upstream.kind}.credentials.secret`, credentials?.secret, "Source");
    }
    case "Receiver":
      return (document.spec.secrets ?? []).flatMap((secret, index) =>
        named(`spec.secrets[${index}]`, secret, "Receiver"),
      );
    case "Cluster":
      return named("spec.endpoint.token.secret", document.spec.endpoint?.token.secret, "Cluster");
    default:
      return [];
  }
}

export interface SecretProblem extends FieldProblem {
  readonly secret: string;
}

/**
 * The secrets of a document that the functions of an installation may not read. @param installation - its id, as the API
 * says it: `starling.111122223333.eu-west-1`.
 */
export function secretProblems(document: Document, installation: string): readonly SecretProblem[] {
  const [name = "", ownAccount, ownRegion] = installation.split(".");
  return secretsOf(document).flatMap(({ field, secret, kind }) => {
    const folder = `${name}/${folders[kind]}/`;
    const { account, region, path } = placeOf(secret);
    const remedy = `write the name of one there, such as ${folder}shop`;
    const isElsewhere = account !== undefined && (account !== ownAccount || region !== ownRegion);
    if (isElsewhere && ownAccount !== undefined) {
      const message = `is a secret of account ${account} in ${region}; Starling reads those of account ${ownAccount} in ${ownRegion} below ${folder}: ${remedy}`;
      return [{ field, secret, message }];
    }
    if (path.startsWith(folder)) return [];
    // Any other text may be the secret itself.
    const shown = path.startsWith(`${name}/`) ? `is ${path}, which is not` : "is not";
    const message = `${shown} below ${folder}, and Starling reads no other secret for a ${kind}; ${remedy}`;
    return [{ field, secret, message }];
  });
}

/** The names that no installation could read, as sentences: what can be said while no installation is known. */
export function secretFormWarnings(document: Document): readonly string[] {
  return secretsOf(document).flatMap(({ field, secret, kind }) => {
    const folder = folders[kind];
    if (new RegExp(`^[A-Za-z][A-Za-z0-9-]*/${folder}/`).test(placeOf(secret).path)) return [];
    const example = `write the name of one there, such as starling/${folder}/shop`;
    return [
      `${field} is not below INSTALLATION/${folder}/, and Starling reads no other secret for a ${kind}; ${example}`,
    ];
  });
}

interface SecretPlace {
  /** Of an ARN. */
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  readonly path: string;
}

function placeOf(secret: string): SecretPlace {
  const [, region, account, path] = /^arn:[\w-]+:secretsmanager:([^:]*):([^:]*):secret:(.+)$/.exec(secret) ?? [];
  return path === undefined ? { path: secret } : { account, region, path };
}
