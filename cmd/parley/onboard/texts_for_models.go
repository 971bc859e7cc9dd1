// This file has what models read from this package.

package onboard

const textOneWord = "Answer with the one word that you are asked for."
