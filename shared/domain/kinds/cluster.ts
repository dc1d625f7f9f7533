import { z } from "zod";
import { API_VERSION, installationMetadata } from "#shared/domain/kinds/metadata.ts";

export const clusterSpec = z.strictObject({
  endpoint: z.strictObject({
    server: z
      .url({ protocol: /^https$/, error: "must be an https URL such as https://10.0.0.1:6443" })
      .refine((text) => !/\/\/[^/]*@/.test(text), "must not hold a user name or password; use token.secret"),
    /** PEM certificates of the cluster's authority, base64 as in a kubeconfig. Absent: the public authorities. */
    caData: z.base64("must be base64, as in a kubeconfig's certificate-authority-data").optional(),
    token: z.strictObject({
      /** Name of a secret that holds the bearer token itself. */
      secret: z.string().min(1),
    }),
    tlsServerName: z.string().min(1).optional(),
  }),
  /** Facts about the cluster that paths may refer to as `{{ cluster.values.NAME }}`. */
  values: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be an identifier"), z.string()).optional(),
});
export type ClusterSpec = z.infer<typeof clusterSpec>;

export const clusterDocument = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Cluster"),
  metadata: installationMetadata,
  spec: clusterSpec,
});
