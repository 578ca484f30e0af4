UPDATE logs SET cut = cut + ? WHERE number = ?
