"""
A model inside a database
=========================

DuckDB adds up the statistics, and one SELECT scores the rows: nothing leaves the database.

The picture compares the posteriors of the SELECT with those of the model in memory.
"""

import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
folder = Path(tempfile.mkdtemp())
penguins.write_parquet(folder / "penguins.parquet")
table = f"read_parquet('{folder}/penguins.parquet')"
model = po.NaiveBayes().fit(
    po.reading.scan_sql("duckdb://", f"SELECT * FROM {table}", target="species")
)
sql = model.to_sql(table, dialect="duckdb")
print(sql[:400], "…")

# %%
scored = duckdb.sql(sql).pl()
scored.head(3)

# %%
posterior = model.predict_proba(penguins.drop("species"))
columns = [name for name in scored.columns if name.startswith("p")][-3:]
figure, ax = plt.subplots(figsize=(5, 4.4))
for j, name in enumerate(columns):
    ax.scatter(posterior[:, j], scored[name].to_numpy(), s=14, label=name)
ax.set(xlabel="predict_proba in memory", ylabel="by the SELECT")
ax.legend(frameon=False)
plt.show()
