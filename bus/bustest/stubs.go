package bustest

var publishing, ordering, leasing, settling, burying, holding, watching, sharing, crashing []promise

const roleEnv, placeEnv = "A", "B"

func child(h Harness, role, place string) int { return 0 }
