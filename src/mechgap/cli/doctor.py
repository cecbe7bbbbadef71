"""`mechgap doctor`: what this installation is made of, and what is slower than it could be."""

import json

from mechgap.cli.app import AsJson, app


@app.command("doctor")
def doctor_command(as_json: AsJson = False) -> None:
    """Say which versions, devices and native kernels are used, and what could be better."""
    from mechgap.experiments.doctor import diagnose
    from mechgap.typed import plain

    found = diagnose()
    if as_json:
        print(json.dumps(plain(found), indent=1))
        return
    width = max(map(len, found.facts))
    for name, value in found.facts.items():
        print(f"{name:{width}}  {value}")
    print()
    for remark in found.remarks:
        print(f"- {remark.what}. {remark.remedy}.")
    if not found.remarks:
        print("Nothing is slower than it could be.")
