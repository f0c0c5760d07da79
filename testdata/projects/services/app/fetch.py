"""Fetches the rates from the service, whose addresses stand in the environment."""

import os
import shutil
import urllib.request

address = os.environ["API_PORT"].split(",")[0]
with urllib.request.urlopen(f"http://{address}/rates.csv", timeout=10) as answer:
    with open("../out/fetched.csv", "wb") as file:
        shutil.copyfileobj(answer, file)
print(f"fetched from {address}")
