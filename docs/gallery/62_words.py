"""
Spam, word by word
==================

A column of text becomes counts of words, and the explanation has one factor per word.
"""

import polars as pl

import posteriori as po

spam = [
    "win a free prize now", "free cash, call now", "you win cash, call to claim",
    "claim your free prize today", "cash prize, win now", "urgent: claim cash now",
]  # fmt: skip
ham = [
    "see you at lunch today", "call me after the meeting", "the meeting is at noon",
    "lunch at noon with you", "are you free for lunch", "notes of the meeting today",
]  # fmt: skip
mail = pl.DataFrame(
    {"message": spam + ham, "kind": ["spam"] * len(spam) + ["ham"] * len(ham)}
)
model = po.NaiveBayes(columns=po.Columns(text=["message"])).fit(mail, "kind")
row = {"message": "Free lunch: call now!"}
print(po.explain.bayes_table(model, row))

# %%
# The words by how much they speak for spam:
import matplotlib.pyplot as plt
import numpy as np

words = model.schema_.columns[0].words
weight = np.diff(model.word_log_prob_["message"], axis=0)[0]
order = np.argsort(weight)
figure, ax = plt.subplots(figsize=(7.2, 5.5))
ax.barh(
    np.array(words)[order],
    weight[order],
    color=np.where(weight[order] > 0, "C3", "C0"),
)
ax.tick_params(axis="y", labelsize=7)
ax.set_xlabel("log p(word | spam) − log p(word | ham), in nats")
plt.show()
