import { errorMessage } from "#shared/base/errors.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { expand, SubstitutionError } from "#shared/source/substitution/expand.ts";
import { openYaml } from "#shared/source/substitution/open-yaml.ts";
import { isMarked, type Refuse, type Substitution } from "#shared/source/substitution/substitute-object.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/**
 * The object as Flux's `postBuild` changes it (fluxcd/pkg kustomize `SubstituteVariables`, strict). It is written as
 * YAML, the variables are expanded in that text, including keys, and the result is parsed again. So values get the
 * types that they look like, and can contain any YAML that fits on a line.
 */
export function substituteText(object: JsonObject, { variables, room }: Substitution, refuse: Refuse): JsonObject {
  if (isMarked(object) || Object.keys(variables).length === 0) return object;
  // A value is one line, as in Flux. In YAML, a carriage return also ends a line.
  const lines = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, value.replaceAll(/[\r\n]/g, "")]),
  );
  try {
    const text = expand(openYaml(object), lines, "flux");
    room.left -= text.length;
    if (room.left < 0)
      throw new SubstitutionError(
        "makes the rendering's expanded texts too long together; shorten the values, or substitute less",
      );
    const [first, ...others] = parseDocuments(text, "the object");
    if (first !== undefined && others.length === 0 && isJsonObject(first.value)) return first.value;
    throw new SubstitutionError(
      "is not an object any more after its variables are replaced; check the values of the variables",
    );
  } catch (error) {
    if (error instanceof SubstitutionError) return refuse("", errorMessage(error));
    // The place in the text does not help, because nobody sees that text. Its words can come from a Secret.
    if (error instanceof ManifestError)
      return refuse(
        "",
        "is not YAML any more after its variables are replaced; check the values of the variables for special characters",
      );
    throw error;
  }
}
