/** What an order is worth. */
type Kind = 'web' | 'shop'
interface Line {
  price: number
  /** How many of them. */
  count?: number
}
/** Totals an order. */
export default function agent({ lines, kind, note = '' }: {
  lines: Line[]
  kind: Kind | null
  note: string
  tags?: Record<string, boolean>
}) {
  return lines.length as number
}
