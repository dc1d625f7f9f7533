/**
 * The recorded files, each with the index of every step that is not compared, and the reason. These steps are sent all
 * the same, because later steps need them.
 */
export const leftOutSteps: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  "01-discovery.json": {},
  "02-create-read-delete.json": {},
  "03-apply-basics.json": {},
  "04-apply-conflicts.json": {},
  "05-apply-lists-deployment.json": {},
  "06-apply-service.json": {},
  "07-status-and-scale.json": {},
  "08-generation-and-versions.json": {},
  "09-patches.json": {},
  "10-lists.json": {},
  "11-watch.json": {
    22: "the resourceVersion in the request is garbled",
    25: "the resourceVersion in the request is garbled",
    26: "the resourceVersion in the request is garbled",
    27: "no list is kept of an older version",
  },
  "12-namespaces.json": {},
  "13-finalizers-and-deletion.json": {},
  "14-owner-references.json": {},
  "15-custom-resources.json": {
    29: "rules (CEL) are not evaluated",
    39: "rules (CEL) are not evaluated",
    58: "the path in the message and the scale accessor",
    62: "counts the object that step 29 should have refused",
    63: "counts the object that step 29 should have refused",
    71: "the resourceVersion in the request is a literal",
  },
  "16-immutable-fields.json": {},
  "17-validation.json": {},
  "18-authentication-and-authorization.json": {},
  "19-limits.json": {},
  "20-applyset.json": {},
  "21-with-controllers.json": {
    8: "Pods without the volumes of the ServiceAccount admission",
    11: "events.k8s.io is not served",
    13: "the order of ReplicaSets by their hashes",
    19: "recorded before the controller had written the status",
    25: "an item reduced to its owner",
  },
  "22-kubectl.json": {
    27: "lists what was created in protobuf",
    39: "recorded before the status was set",
    40: "recorded before the status was set",
    57: "deletes what was created in protobuf",
  },
};

const garbled = "the resourceVersion in the request is garbled";
const build = "names the build of the recorded server";
const moment = "the controllers had come further, or less far, when it was recorded";

/** The same for a real kube-apiserver: the recording is wrong there, or depended on the moment. */
export const leftOutOnRealServers: typeof leftOutSteps = {
  "01-discovery.json": { 0: build },
  "02-create-read-delete.json": { 14: build, 39: build },
  "11-watch.json": { 22: garbled, 25: garbled, 26: garbled },
  "15-custom-resources.json": { 71: "the resourceVersion in the request is a literal" },
  "18-authentication-and-authorization.json": {
    2: build,
    29: "which of two bindings that allow it is named is up to chance",
    33: "the order of rules is that of a Go map",
    34: "a static token has a uid, and no extra",
  },
  "21-with-controllers.json": {
    8: "the recorded server gave Pods a volume of its vendor's",
    19: moment,
    23: moment,
    25: "an item reduced to its owner",
  },
  "22-kubectl.json": {
    27: "lists what was created in protobuf",
    39: "recorded before the status was set",
    40: "recorded before the status was set",
    57: "deletes what was created in protobuf",
  },
};
