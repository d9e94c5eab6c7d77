class RegExp {
  #made = true
  source = ''
  flags = ''
  lastIndex = 0
  constructor(pattern, given) {
    const text = pattern === undefined ? '' : String(pattern)
    const wanted = given === undefined ? '' : String(given)
    let flags = ''
    for (const flag of ['g', 'i', 'm', 's', 'u', 'y']) if (wanted.includes(flag)) flags += flag
    if (flags.length !== wanted.length) {
      throw new SyntaxError(`Invalid flags supplied to RegExp constructor '${wanted}'`)
    }
    try {
      String.findPattern('', text, flags, 0)
    } catch (error) {
      throw new SyntaxError(error.message)
    }
    this.source = regexSource_(text)
    this.flags = flags
    this.global = flags.includes('g')
    this.ignoreCase = flags.includes('i')
    this.multiline = flags.includes('m')
    this.dotAll = flags.includes('s')
    this.unicode = flags.includes('u')
    this.sticky = flags.includes('y')
    this.hasIndices = false
  }
  next_(text) {
    if (!this.global && !this.sticky) return String.findPattern(text, this.source, this.flags, 0)
    const from = this.lastIndex
    const found = from > text.length ? null : String.findPattern(text, this.source, this.flags, from)
    this.lastIndex = found === null ? 0 : found.index + found.match.length
    return found
  }
  test(text) {
    return this.next_(String(text)) !== null
  }
  exec(given) {
    const text = String(given)
    const found = this.next_(text)
    return found === null ? null : regexMatch_(found, text)
  }
  toString() {
    return `/${this.source}/${this.flags}`
  }
  made_() {
    return this
  }
  all_(text) {
    if (this.global) {
      this.lastIndex = 0
      return String.findPatterns(text, this.source, this.flags)
    }
    const found = this.next_(text)
    return found === null ? [] : [found]
  }
}
function regexSource_(text) {
  if (text === '') return '(?:)'
  if (!text.includes('/') && !text.includes('\n')) return text
  let source = ''
  let inClass = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (c === '\\') {
      source += c + (text[i + 1] ?? '')
      i++
    } else {
      if (c === '[') inClass = true
      else if (c === ']') inClass = false
      source += c === '/' && !inClass ? '\\/' : c === '\n' ? '\\n' : c
    }
  }
  return source
}
function regexMatch_(found, text) {
  const parts = { 0: found.match }
  found.groups.forEach((group, i) => { parts[i + 1] = group ?? undefined })
  const names = Object.keys(found.named)
  let groups
  if (names.length > 0) {
    groups = {}
    for (const name of names) groups[name] = found.named[name] ?? undefined
  }
  return { ...parts, index: found.index, input: text, groups, length: found.groups.length + 1 }
}
function regexText_(text, name) {
  if (typeof text !== 'string') throw new TypeError(`'${name}' is not a function`)
  return text
}
function regexOn_match(given, pattern) {
  const text = regexText_(given, 'match')
  if (!pattern.global) return pattern.exec(text)
  const all = pattern.all_(text)
  return all.length === 0 ? null : all.map((found) => found.match)
}
function regexOn_matchAll(given, of) {
  const pattern = of.made_()
  const text = regexText_(given, 'matchAll')
  if (!pattern.global) {
    throw new TypeError('String.prototype.matchAll called with a non-global RegExp argument')
  }
  if (pattern.lastIndex > 0) throw new Error('matchAll of a RegExp has to begin at index 0')
  const all = String.findPatterns(text, pattern.source, pattern.flags)
  return all.map((found) => regexMatch_(found, text))
}
function regexOn_search(given, of) {
  const pattern = of.made_()
  const text = regexText_(given, 'search')
  const found = String.findPattern(text, pattern.source, pattern.flags, 0)
  return found === null ? -1 : found.index
}
function regexOn_split(given, of, limit) {
  const pattern = of.made_()
  const text = regexText_(given, 'split')
  const parts = String.splitPattern(text, pattern.source, pattern.flags, limit)
  return parts.map((part) => part ?? undefined)
}
function regexOn_replace(given, pattern, put) {
  const text = regexText_(given, 'replace')
  if (pattern.global || !pattern.sticky) {
    if (pattern.global) pattern.lastIndex = 0
    return String.replacePattern(text, pattern.source, pattern.flags, String(put))
  }
  const from = pattern.lastIndex
  if (pattern.next_(text) === null) return text
  if (from === 0) return String.replacePattern(text, pattern.source, pattern.flags, String(put))
  throw new Error('replace with the flag y has to begin at index 0')
}
function regexOn_replaceAll(given, pattern, put) {
  const text = regexText_(given, 'replaceAll')
  if (!pattern.global) throw new TypeError('replaceAll must be called with a global RegExp')
  return regexOn_replace(text, pattern, put)
}
function regexBy_replace(given, pattern, put) {
  const text = regexText_(given, 'replace')
  let made = ''
  let end = 0
  for (const found of pattern.all_(text)) {
    const parts = [found.match]
    for (const group of found.groups) parts.push(group ?? undefined)
    parts.push(found.index)
    parts.push(text)
    const names = Object.keys(found.named)
    if (names.length > 0) parts.push(regexMatch_(found, text).groups)
    made += text.slice(end, found.index) + String(put(...parts))
    end = found.index + found.match.length
  }
  return made + text.slice(end)
}
function regexBy_replaceAll(given, pattern, put) {
  const text = regexText_(given, 'replaceAll')
  if (!pattern.global) throw new TypeError('replaceAll must be called with a global RegExp')
  return regexBy_replace(text, pattern, put)
}
