import { StatusError } from "#apiserver/status-error.ts";

/** The form in which a client wants an answer: plain or transformed (`as=Table`), in JSON or YAML. */
export interface Representation {
  readonly as: "object" | "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList";
  readonly format: "json" | "yaml";
  /** The client asked for apidiscovery v2. */
  readonly aggregated: boolean;
  readonly contentType: string;
}

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

function parameters(parts: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    parts.map((part) => {
      const [key = "", value = ""] = part.split("=");
      return [key.trim(), value.trim()];
    }),
  );
}

function understand(offer: string): Representation | undefined {
  const [type = "", ...rest] = offer.split(";");
  const media = type.trim().toLowerCase();
  const params = parameters(rest);
  const as = params.get("as");
  const json: Representation = { as: "object", format: "json", aggregated: false, contentType: "application/json" };
  if (media === "*/*" || media === "application/*") return json;
  if (media === "application/yaml" && as === undefined)
    return { ...json, format: "yaml", contentType: "application/yaml" };
  if (media !== "application/json") return undefined;
  if (as === undefined) return json;
  if (as === "APIGroupDiscoveryList") {
    return params.get("v") === "v2" ? { ...json, aggregated: true, contentType: aggregatedType } : undefined;
  }
  if (params.get("g") !== "meta.k8s.io" || params.get("v") !== "v1") return undefined;
  return as === "Table" || as === "PartialObjectMetadata" || as === "PartialObjectMetadataList"
    ? { ...json, as }
    : undefined;
}

/**
 * The first media type of an Accept header that this server supports. @throws StatusError 406 when it supports none.
 */
export function negotiate(accept: string | undefined): Representation {
  const offers = accept === undefined || accept.trim() === "" ? ["*/*"] : accept.split(",");
  for (const offer of offers) {
    const representation = understand(offer);
    if (representation !== undefined) return representation;
  }
  throw new StatusError(
    406,
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
    { reason: "NotAcceptable", details: {} },
  );
}
