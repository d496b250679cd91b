/**
 * Characters that editors, terminals or parsers may treat as a line end, hide or display differently: controls, formats
 * (such as text direction), separators, unpaired surrogates, noncharacters and blank letters.
 */
export const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffe\uffff]/gu

/** The text on one line, with spaces for invisible characters. */
export const oneLine = (text: string): string => text.replace(INVISIBLE, ' ')
