/** The labels that Starling itself sets on a discovered cluster. Workers read them, and have no use for the schema of discoveries. */

/** Prefix of these labels. */
export const ownLabelPrefix = "starling.dev/";
/** Label with the cluster's minor version of Kubernetes. */
export const versionLabel = `${ownLabelPrefix}version`;
