/** A policy that denies everything that the pods of the shop receive. */
export const DENY = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec: {podSelector: {}}
`
