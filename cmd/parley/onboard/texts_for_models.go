// This file holds the text that models read from this package.

package onboard

const textOneWord = "Answer with the one word that you are asked for."
