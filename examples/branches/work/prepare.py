"""Writes the places that a tour has to visit; the argument is their number."""

import json
import random
import sys

random.seed(1)
places = [[random.randrange(1000), random.randrange(1000)] for _ in range(int(sys.argv[1]))]
with open("places.json", "w") as file:
    json.dump(places, file)
