import * as z from "zod";
import { address, type Push, pushedTag, referenceName } from "#functions/webhook/providers/provider.ts";

const region = z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/);

const moved = z.object({
  source: z.literal("aws.codecommit"),
  "detail-type": z.literal("CodeCommit Repository State Change"),
  region,
  detail: z.object({
    repositoryName: address.regex(/^[\w.-]+$/),
    referenceType: z.enum(["branch", "tag"]),
    referenceName,
  }),
});

const pushed = z.object({
  source: z.literal("aws.ecr"),
  "detail-type": z.literal("ECR Image Action"),
  account: z.string().regex(/^\d{12}$/),
  region,
  detail: z.object({ "repository-name": address.min(1), "image-tag": pushedTag.optional() }),
});

/**
 * The change that an event of the account's bus is about. Only AWS itself puts events with such a source on a bus, so that
 * the event needs no further proof.
 * @returns undefined for anything else, such as an HTTP request.
 */
export function changeOf(event: unknown): Push | undefined {
  const parsed = z.union([moved, pushed]).safeParse(event);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  const suffix = data.region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  if (data.source === "aws.ecr") {
    const { "repository-name": name, "image-tag": tag } = data.detail;
    const urls = [`oci://${data.account}.dkr.ecr.${data.region}.${suffix}/${name}`];
    return tag === undefined ? { urls } : { urls, tags: [tag] };
  }
  const { repositoryName: name, referenceType: type, referenceName: ref } = data.detail;
  return {
    urls: ["git-codecommit", "git-codecommit-fips"].map(
      (host) => `https://${host}.${data.region}.${suffix}/v1/repos/${name}`,
    ),
    refs: [`refs/${type === "tag" ? "tags" : "heads"}/${ref}`],
  };
}
