/** A package URL, decoded. https://github.com/package-url/purl-spec */
export interface Purl {
  readonly type: string
  /** Namespace and name. */
  readonly path: string
  readonly version: string | null
  readonly qualifiers: ReadonlyMap<string, string>
}

const PURL = /^pkg:\/*([A-Za-z][A-Za-z0-9.+-]*)\/([^?#]*?)(?:@([^@/?#]*))?(?:\?([^#]*))?(?:#.*)?$/

/** Returns a package URL, or null for other text. */
export function parsePurl(text: string): Purl | null {
  const match = PURL.exec(text)
  if (match === null) return null
  try {
    const [, type, path, version, qualifiers = ''] = match as unknown as [string, string, string, string?, string?]
    if (path.replaceAll('/', '') === '') return null
    const pairs = qualifiers.split('&').filter((one) => one !== '')
    return {
      type: type.toLowerCase(),
      path: decodeURIComponent(path),
      version: version ? decodeURIComponent(version) : null,
      qualifiers: new Map(
        pairs.map((pair) => {
          const at = pair.indexOf('=')
          const [key, value] = at === -1 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
          return [key.toLowerCase(), decodeURIComponent(value)]
        }),
      ),
    }
  } catch {
    // A percent sign that begins no escape.
    return null
  }
}
