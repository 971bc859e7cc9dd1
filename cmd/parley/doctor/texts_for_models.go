// This file has what models read from this package.

package doctor

const textOneWord = "Answer with the one word that you are asked for."
