import * as z from "zod";
import { boundedText } from "#shared/base/bounded.ts";
import { hiddenValue } from "#shared/base/hidden-value.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import { installationMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { secretName } from "#shared/fleet/kinds/secret-name.ts";
import { valuesSchema } from "#shared/fleet/kinds/values.ts";
import { zoneName } from "#shared/fleet/kinds/zone-name.ts";
import { readAuthority } from "#shared/kube/certificate-authority.ts";

const endpointSchema = z.strictObject({
  server: z
    .url({ protocol: /^https$/, error: "must be an https URL such as https://10.0.0.1:6443" })
    .max(2048, "must have at most 2048 characters")
    .superRefine((text, context) => {
      const message = serverProblem(text, "use token.secret");
      // The value may be the password.
      if (message !== undefined) context.addIssue({ code: "custom", message, params: hiddenValue });
    }),
  /** PEM certificates of the cluster's authority, base64 as in a kubeconfig. When absent, the public authorities. */
  caData: boundedText(65_536)
    .meta({ contentEncoding: "base64" })
    .superRefine((text, context) => {
      const read = readAuthority(text);
      if ("problem" in read) context.addIssue({ code: "custom", message: read.problem, params: hiddenValue });
    })
    .optional(),
  token: z.strictObject({
    /** Name of a secret: JSON with the token, and with the server and authority that it is for (cluster-secret.ts). */
    secret: secretName,
  }),
  tlsServerName: boundedText(253).min(1).optional(),
});

/**
 * Reads the parsed URL, because in the text a password may also follow one slash, or none.
 * @param instead - what signs in, in place of a password.
 */
function serverProblem(text: string, instead: string): string | undefined {
  // URLs drop some of these characters and read others as a slash; a reader of the text sees another host.
  if (/[\\\s\p{Cc}]/u.test(text))
    return "must not contain a backslash, a space or a line end; write it as https://HOST:PORT";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  if (url.username !== "" || url.password !== "") return `must not contain a user name or password; ${instead}`;
  if (url.search !== "" || url.hash !== "")
    return "must not have a query or a fragment, which requests would not send; remove it";
  return undefined;
}

const overrideForm = "https://prod-1.eks.corp.example or https://10.20.0.1:8443";
const ownName = "ABCDEF0123.gr7.eu-west-1.eks.amazonaws.com";

/** Another address of the API server than EKS names. It has no `caData`: the token goes to whom EKS vouches for only. */
const endpointOverride = z.strictObject({
  server: z
    .url({ protocol: /^https$/, error: `must be an https URL with a host and perhaps a port, such as ${overrideForm}` })
    .max(2048, "must have at most 2048 characters")
    .superRefine((text, context) => {
      const message = serverProblem(text, "Starling signs in by IAM") ?? pathProblem(text);
      if (message !== undefined) context.addIssue({ code: "custom", message, params: hiddenValue });
    }),
  tlsServerName: boundedText(253)
    .regex(
      /^(?![\d.]+$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i,
      `must be a name in the certificate of the API server, such as ${ownName}: no URL, no address and no wildcard; or leave it out for the host that EKS names`,
    )
    .optional(),
});
export type EndpointOverride = z.infer<typeof endpointOverride>;

/** No API server of EKS is below a path. */
function pathProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.pathname === "/" && url.port !== "0")) return undefined;
  const what = url.port === "0" ? "must not have the port 0" : "must not have a path, because the API server has none";
  return `${what}; write ${overrideForm}`;
}

const eksSchema = z.strictObject({
  /** EKS and STS give its address, authority and credentials. */
  arn: boundedText(2048).refine(
    (text) => parseEksArn(text) !== undefined,
    "must be the ARN of an EKS cluster such as arn:aws:eks:eu-west-1:111122223333:cluster/prod-1",
  ),
  endpointOverride: endpointOverride.optional(),
});

export const eksRoleSchema = z.strictObject({
  /** A role in the cluster's account, with its path if it has one. */
  name: boundedText(576).regex(
    /^([\w+=,.@-]{1,510}\/)*[\w+=,.@-]{1,64}$/,
    "must be the name of an IAM role in the cluster's account, such as starling/clusters/apply",
  ),
});

/** How Starling reaches the cluster: by default with its own identity, from the zone `home`. */
const clusterAccess = z
  .strictObject({
    role: eksRoleSchema.optional(),
    /** The zone whose workers reach the cluster. */
    zone: zoneName.optional(),
  })
  .refine(
    ({ role, zone }) => role !== undefined || zone !== undefined,
    "needs role, zone or both; or leave access out",
  );

export const clusterSpec = z
  .strictObject({
    eks: eksSchema.optional(),
    endpoint: endpointSchema.optional(),
    access: clusterAccess.optional(),
    /**
     * The version that charts get, and the label `starling.dev/version`, when no ClusterDiscovery knows it: only the
     * minor version, so that clusters of one version share their renderings.
     */
    kubeVersion: boundedText(10)
      .regex(/^1\.\d{1,3}$/, 'must be a minor version of Kubernetes in quotes, as "1.34"')
      .optional(),
    /** Facts about the cluster that paths may refer to as `{{ cluster.values.NAME }}`. */
    values: valuesSchema.optional(),
  })
  // Without both, the document is about a discovered cluster; the api knows whether there is one.
  .refine(({ eks, endpoint }) => eks === undefined || endpoint === undefined, {
    message: "needs exactly one of eks or endpoint",
  })
  .refine(({ endpoint, access }) => endpoint === undefined || access?.role === undefined, {
    message:
      "must not stand beside endpoint: Starling reaches such a cluster with the token of its secret; remove role",
    path: ["access", "role"],
  });
export type ClusterSpec = z.infer<typeof clusterSpec>;

export const clusterDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Cluster"),
  metadata: installationMetadata,
  spec: clusterSpec,
});
