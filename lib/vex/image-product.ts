/** The package URL of the type `oci` of an image: its name is the last segment of the repository. */
export function imageProduct(digest: string, repository: string): string {
  const last = repository.slice(repository.lastIndexOf('/') + 1).toLowerCase()
  const url = repository === '' ? '' : `?repository_url=${encodeURIComponent(repository).replaceAll('%2F', '/')}`
  return `pkg:oci/${encodeURIComponent(last) || 'unknown'}@${encodeURIComponent(digest)}${url}`
}
