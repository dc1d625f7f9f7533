import { errorMessage } from "#shared/base/errors.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { expand, SubstitutionError } from "#shared/source/substitution/expand.ts";
import { openYaml } from "#shared/source/substitution/open-yaml.ts";
import { isMarked, type Refuse, type Substitution } from "#shared/source/substitution/substitute-object.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/**
 * The object as Flux's `postBuild` leaves it (fluxcd/pkg kustomize `SubstituteVariables`, strict): it is written as YAML, the
 * variables are expanded in that text, also in keys, and what comes out is read again. So values have the types that they
 * look like there, and may be anything that fits on a line.
 */
export function substituteText(object: JsonObject, { variables, room }: Substitution, refuse: Refuse): JsonObject {
  if (isMarked(object) || Object.keys(variables).length === 0) return object;
  // As there, a value is one line; as YAML has them, a carriage return ends one, too.
  const lines = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, value.replaceAll(/[\r\n]/g, "")]),
  );
  try {
    const text = expand(openYaml(object), lines, "flux");
    room.left -= text.length;
    if (room.left < 0)
      throw new SubstitutionError("comes to more, with what was replaced before it, than a rendering may have");
    const [first, ...others] = parseDocuments(text, "the object");
    if (first !== undefined && others.length === 0 && isJsonObject(first.value)) return first.value;
    throw new SubstitutionError("is no object any more when its variables are replaced");
  } catch (error) {
    if (error instanceof SubstitutionError) return refuse("", errorMessage(error));
    // Where in the text is of no use, for nobody sees it, and its words may be of a Secret.
    if (error instanceof ManifestError)
      return refuse("", "is no YAML any more when its variables are replaced; see what characters their values have");
    throw error;
  }
}
