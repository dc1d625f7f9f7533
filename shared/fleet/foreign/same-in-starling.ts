import { isJsonObject, type Json } from "#shared/base/json.ts";
import { applicationSaid } from "#shared/fleet/foreign/argo.ts";
import { applicationSetSaid } from "#shared/fleet/foreign/argo-set.ts";
import {
  gitRepositorySaid,
  helmReleaseSaid,
  isTaken,
  kustomizationSaid,
  ociRepositorySaid,
} from "#shared/fleet/foreign/flux.ts";
import { gitRepoSaid } from "#shared/fleet/foreign/rancher-fleet.ts";
import { checked, type FoldersOf, member, remarked, type Said, titleOf } from "#shared/fleet/foreign/translation.ts";
import { uniquelyNamed } from "#shared/fleet/foreign/unique-names.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

const unknownFolders: FoldersOf = () => undefined;

/**
 * Starling's documents for documents of Flux, Argo CD and Fleet, made from their own fields; other documents are
 * ignored. `validate` accepts each of them, and everything that could not be translated is named.
 */
export function sameInStarling(objects: readonly Json[], foldersOf: FoldersOf = unknownFolders): Said {
  const foreign = objects.filter((object) => foreignKindOf(object) !== undefined);
  return checked(
    eachNamespaceOnce(uniquelyNamed(foreign.map((object) => saidOf(object, { all: objects, foldersOf })))),
  );
}

/** In Starling an object belongs to one Sync: when several Syncs would create a Namespace, the first does. */
function eachNamespaceOnce({ documents, remarks }: Said): Said {
  const makers = new Map<string, string>();
  const more: string[] = [];
  const once = documents.map((document) => {
    const spec = member(document, "spec");
    const templates = listAt(spec, "templates").map((template) => {
      if (!isJsonObject(template) || !("createNamespace" in template)) return template;
      const key = JSON.stringify([spec.clusters, template.targetNamespace]);
      const maker = makers.get(key);
      if (maker === undefined) {
        makers.set(key, titleOf(document));
        return template;
      }
      more.push(`${titleOf(document)}: its Namespace ${stringAt(template, "targetNamespace")} comes with ${maker}`);
      const { createNamespace: _, ...others } = template;
      return others;
    });
    return templates.length === 0 ? document : { ...document, spec: { ...spec, templates } };
  });
  return { documents: once, remarks: [...remarks, ...more] };
}

interface Around {
  readonly all: readonly Json[];
  readonly foldersOf: FoldersOf;
}

function saidOf(object: Json, around: Around): Said {
  const kind = stringAt(object, "kind") ?? "";
  switch (kind) {
    case "GitRepository":
      return gitRepositorySaid(object);
    case "Kustomization":
      return kustomizationSaid(object, around);
    case "HelmRelease":
      return helmReleaseSaid(object, around);
    case "OCIRepository":
      return ociRepositorySaid(object, around);
    case "HelmRepository":
    case "HelmChart":
      return isTaken(object, around) ? remarked() : insteadSaid(object);
    case "Application":
      return applicationSaid(object, around.foldersOf);
    case "ApplicationSet":
      return applicationSetSaid(object, around.foldersOf);
    case "GitRepo":
      return gitRepoSaid(object, around.foldersOf);
    default:
      return insteadSaid(object);
  }
}

function insteadSaid(object: Json): Said {
  return remarked(`${titleOf(object)}: for Starling, write ${foreignKindOf(object)?.instead}`);
}
